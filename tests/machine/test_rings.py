"""What the entry of an io_uring under /proc says of its files, as kernels of different age write it."""

from pathlib import Path

import pytest

from cliffwatch.machine.rings import ring_holds

SINCE_6_10 = "UserFiles:\t2\n    0: {path}\nUserBufs:\t1\n    0: 0x7f0000000000/4096\n"
BEFORE = "UserFiles:\t3\n    0: <none>\n    1: {name}\n    2: <none>\nUserBufs:\t0\n"


def ring(place: Path, files: str) -> Path:
    """A ring with these files as descriptor 5 of a process."""
    for part in ("fd", "fdinfo"):
        (place / part).mkdir(parents=True, exist_ok=True)
    (place / "root").symlink_to("/")
    (place / "fd" / "5").symlink_to("anon_inode:[io_uring]")
    (place / "fdinfo" / "5").write_text("pos:\t0\nflags:\t02000002\n" + files)
    return place / "fd" / "5"


@pytest.mark.parametrize(
    ("listed", "holds"),
    [
        (SINCE_6_10, True),
        (BEFORE, True),
        ("UserFiles:\t1\n    0: {path} (deleted)\nUserBufs:\t0\n", True),
        ("UserFiles:\t1\n    0: {path}.old\nUserBufs:\t0\n", False),
        ("UserFiles:\t1024\nUserBufs:\t1\n    0: {name}\n", False),
        ("UserFiles:\t0\nUserBufs:\t0\n", False),
        ("", False),
    ],
)
def test_files_are_known_by_their_path_or_where_there_is_none_by_their_name(
    tmp_path: Path, listed: str, holds: bool
) -> None:
    file = tmp_path / "a file"
    file.touch()
    wanted = file.stat()
    files = listed.format(path=str(file).replace(" ", "\\040"), name=file.name)
    descriptor = ring(tmp_path / "process", files)
    assert ring_holds(descriptor, lambda status, _: status.st_ino == wanted.st_ino, frozenset({file.name})) is holds


def test_a_descriptor_that_is_no_io_uring_holds_no_files(tmp_path: Path) -> None:
    (tmp_path / "fd").mkdir()
    (tmp_path / "fd" / "5").symlink_to("/dev/null")
    for descriptor in (tmp_path / "fd" / "5", tmp_path / "fd" / "6"):
        assert not ring_holds(descriptor, lambda *_: True, frozenset())
