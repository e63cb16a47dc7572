"""Check whether a target is the same directory or device as before, by the identity recorded then."""

import re

#: How `Examination.blocks` tells a file from a later one of the same number.
UNKNOWN_BIRTH = "of unknown birth"
_BORN = re.compile(r"born \S+Z")
_FILE_SYSTEM = re.compile(r" of file system [0-9a-f]{16}")
_BIRTH = re.compile(rf" (?:born \d{{4}}-\S+Z|generation \d+|{UNKNOWN_BIRTH})(?= \d+ bytes(?:;|$))")
#: What of a drive's words may change while it is the same: the numbers of the file that it is made of, and its size.
_CHANGING = re.compile(rf"file \d+ of \d+:\d+ |{UNKNOWN_BIRTH} |generation \d+ |from byte \d+ |\d+ bytes$")


def is_same_directory(asked: str, present: str) -> bool:
    """Whether a target's directory is the one it was before, both as `directory_of` gives them.

    The birth decides where both have one, and not the inode: a file system that is stacked on others may number its
    inodes anew when it is mounted. So does the file system, which earlier versions did not write down.
    """
    if _differ(_FILE_SYSTEM, asked, present):
        return False
    if all(_BORN.search(words) for words in (asked, present)):
        return not _differ(_BORN, asked, present)
    return _FILE_SYSTEM.sub("", asked) == _FILE_SYSTEM.sub("", present)


def is_same_device(asked: str, present: str) -> bool:
    """Whether a device is made of what it was made of before, both as `Examination.blocks` says it.

    What was written down by a version that did not look when files were made is compared without that.
    """
    if _BIRTH.search(asked) is None:
        present = _BIRTH.sub("", present)
    return sorted(asked.split("; ")) == sorted(present.split("; "))


def shares_a_drive(asked: str, present: str) -> bool:
    """Whether a directory may lie on a drive that it lay on before, both as `Examination.blocks` says it.

    A copy of a file system has its UUID and the births of its files. Arrays get new members while a run goes on, and
    numbers of devices are given anew at each start. True where a drive has nothing else to be known by.
    """
    mine, its = ({_CHANGING.sub("", drive).strip() for drive in words.split("; ")} for words in (asked, present))
    return "" in mine | its or bool(mine & its)


def _differ(part: re.Pattern[str], one: str, other: str) -> bool:
    """Whether both identities have that part, and the parts differ."""
    mine, its = part.search(one), part.search(other)
    return mine is not None and its is not None and mine[0] != its[0]
