"""Check whether a target is the same directory or device as before, by the identity recorded then."""

import re

#: Words in `Examination.blocks` for a file whose birth is unknown; a birth distinguishes it from a later file with the
#: same inode number.
UNKNOWN_BIRTH = "of unknown birth"
_BORN = re.compile(r"born \S+Z")
_FILE_SYSTEM = re.compile(r" of file system [0-9a-f]{16}")
_BIRTH = re.compile(rf" (?:born \d{{4}}-\S+Z|generation \d+|{UNKNOWN_BIRTH})(?= \d+ bytes(?:;|$))")
#: Parts of a drive's description that may change without a change of the drive: numbers of its backing file, its size.
_CHANGING = re.compile(rf"file \d+ of \d+:\d+ |{UNKNOWN_BIRTH} |generation \d+ |from byte \d+ |\d+ bytes$")


def is_same_directory(asked: str, present: str) -> bool:
    """Whether two identities, as `directory_of` gives them, are of the same directory.

    Where both have a birth (time of creation), it is compared in place of the inode: a file system that is stacked on
    others may number its inodes anew when it is mounted. The file systems must be equal too, if both were recorded;
    earlier versions did not record them.
    """
    if _differ(_FILE_SYSTEM, asked, present):
        return False
    if all(_BORN.search(words) for words in (asked, present)):
        return not _differ(_BORN, asked, present)
    return _FILE_SYSTEM.sub("", asked) == _FILE_SYSTEM.sub("", present)


def is_same_device(asked: str, present: str) -> bool:
    """Whether two compositions of a device, as in `Examination.blocks`, are the same.

    The birth of a loop device's file is ignored if `asked` has none, as recorded by an earlier version.
    """
    if _BIRTH.search(asked) is None:
        present = _BIRTH.sub("", present)
    return sorted(asked.split("; ")) == sorted(present.split("; "))


def shares_a_drive(asked: str, present: str) -> bool:
    """Whether a directory's drives, as in `Examination.blocks`, may have one in common with those recorded before.

    This detects a copy of a file system, which has the same UUID and births of files as the original. One drive in
    common is enough, since arrays get new members during a run. Device numbers are not compared, since they change at
    each boot, nor are sizes. True where a drive has nothing else to identify it.
    """
    mine, its = ({_CHANGING.sub("", drive).strip() for drive in words.split("; ")} for words in (asked, present))
    return "" in mine | its or bool(mine & its)


def _differ(part: re.Pattern[str], one: str, other: str) -> bool:
    """Whether `part` matches in both identities, with different text."""
    mine, its = part.search(one), part.search(other)
    return mine is not None and its is not None and mine[0] != its[0]
