"""What attaching a drive did not make stays where it is, whichever command takes the drive down."""

import os
from pathlib import Path

import pytest
from tests.labs.aging.machine import CLOCK, SMALL, State

from cliffwatch.base.errors import Code, Problem
from cliffwatch.labs.aging.description import FileSystem
from cliffwatch.labs.aging.lifecycle import AttachRequest, clean, detach

DRIVE = AttachRequest(SMALL, FileSystem.NONE)


def delete(state: State, name: str = "one") -> list[str]:
    return detach(state.directory, name, CLOCK, delete=True)


def content_in(state: State, directory: Path) -> Path:
    """Attach a drive with its content there, as a drill does, detach it, and give the content's path."""
    directory.mkdir(exist_ok=True)
    state.attach(AttachRequest(SMALL, FileSystem.NONE, content_directory=directory))
    state.detach()
    (content,) = directory.iterdir()
    return content


def test_a_directory_that_is_no_drive_is_left_and_named(state: State) -> None:
    backup = state.place("backup").directory
    backup.mkdir(parents=True)
    (backup / "keep").write_text("precious")
    (backup / "content").write_text("precious, too")
    assert f"left what is no drive: {backup} is not a drive's directory" in clean(state.directory, CLOCK)
    with pytest.raises(Problem, match="there is no aging drive 'backup'") as refused:
        delete(state, "backup")
    assert refused.value.code is Code.NOT_FOUND
    with pytest.raises(Problem, match="is not a drive's directory; use another name, or move it away"):
        state.attach(DRIVE, "backup")
    assert {entry.name: entry.read_text() for entry in backup.iterdir()} == {
        "keep": "precious",
        "content": "precious, too",
    }
    for entry in backup.iterdir():
        entry.unlink()
    backup.rmdir()


def test_a_link_among_the_drives_is_never_followed(state: State, tmp_path: Path) -> None:
    for name in ("content", "files", "flash"):
        (tmp_path / name).mkdir()
    (tmp_path / "turn").touch()
    link = state.place("link").directory
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path)
    assert f"left what is no drive: {link} is a symbolic link" in clean(state.directory, CLOCK)
    for attempt in (lambda: delete(state, "link"), lambda: state.attach(DRIVE, "link")):
        with pytest.raises(Problem, match="is a symbolic link"):
            attempt()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["content", "files", "flash", "turn"]
    link.unlink()


def test_the_content_of_a_drive_whose_description_is_lost_is_kept_until_it_is_deleted(state: State) -> None:
    state.attach(DRIVE)
    state.detach()
    description = state.place().directory / "drive.json"
    description.unlink()
    content = state.place().content.stat()
    with pytest.raises(Problem, match=r"drive\.json is lost, and .*/content is kept; put it back, or") as refused:
        clean(state.directory, CLOCK)
    assert refused.value.code is Code.DRIVE_INVALID
    with pytest.raises(Problem, match="is lost"):
        state.attach(DRIVE)
    assert state.place().content.stat() == content
    assert delete(state) == []
    assert not state.place().directory.exists()


def test_a_file_that_the_drive_did_not_make_outlives_it(state: State) -> None:
    state.attach(DRIVE)
    mine = state.place().directory / "notes"
    mine.write_text("mine")
    done = state.command("drive", "detach", "one", "--delete")
    assert (done.returncode, "the drive did not make what is in it (notes)" in done.stderr) == (0, True), done.stderr
    assert [entry.name for entry in state.place().directory.iterdir()] == ["notes"]
    mine.unlink()
    assert clean(state.directory, CLOCK)[0] == "removed the drive one"


def test_a_damaged_description_keeps_no_other_drive_from_being_cleaned(state: State) -> None:
    for name in ("a", "b"):
        process = state.script(
            f'attach(STATE, "{name}", SystemClock(), AttachRequest(SMALL), keeper=ProcessIdentity.of(os.getpid()))'
        )
        process.communicate()
    (state.place("a").directory / "drive.json").write_text("")
    with pytest.raises(Problem) as refused:
        clean(state.directory, CLOCK)
    assert refused.value.code is Code.DRIVE_INVALID
    assert "removed the drive b" in refused.value.detail
    assert "cliffwatch drive detach a --delete" in refused.value.detail
    assert not state.place("b").directory.exists()


def test_a_drive_that_was_whole_is_kept_when_attaching_it_again_was_killed(state: State) -> None:
    state.attach(DRIVE)
    state.detach()
    content = state.place().content.stat().st_ino
    process = state.script(
        'lifecycle.attach_loop = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\nattach(STATE, "one", SystemClock())'
    )
    process.communicate()
    assert clean(state.directory, CLOCK)[0] == "detached the drive one"
    assert state.place().content.stat().st_ino == content
    assert "detached the drive one" not in clean(state.directory, CLOCK)


def test_a_drive_with_its_content_elsewhere_is_attached_again_and_deleted_with_it(state: State, tmp_path: Path) -> None:
    content = content_in(state, tmp_path)
    assert content.stat().st_mode & 0o777 == 0o600
    state.attach()
    assert delete(state) == []
    assert not content.exists()


@pytest.mark.parametrize(
    ("replace_by", "reported"),
    [
        ("link", "is a symbolic link"),
        ("directory", "is not a regular file"),
        ("mode", "is open to other users (mode 0640)"),
        ("owner", "belongs to the user 65534"),
        ("name", "has 2 names (hard links)"),
    ],
)
def test_a_file_of_another_in_place_of_the_content_is_neither_written_nor_deleted(
    state: State, tmp_path: Path, replace_by: str, reported: str
) -> None:
    content = content_in(state, tmp_path / "memory")
    content.unlink()
    victim = tmp_path / "victim"
    victim.touch(mode=0o640 if replace_by == "mode" else 0o600)
    if replace_by == "link":
        content.symlink_to(victim)
    elif replace_by == "directory":
        content.mkdir()
    elif replace_by == "name":
        content.hardlink_to(victim)
    else:
        victim.rename(content)
    if replace_by == "owner":
        os.chown(content, 65534, 65534)
    for attempt in (state.attach, lambda: delete(state)):
        with pytest.raises(Problem) as refused:
            attempt()
        assert f"{content}, which {state.place().content} is a link to, {reported}" in refused.value.detail
    assert content.is_symlink() or content.is_dir() or content.stat().st_size == 0
    state.place().content.unlink()
    assert delete(state) == []
    assert content.is_symlink() or content.exists()


def test_another_user_s_link_on_the_way_to_the_content_is_not_followed(state: State, tmp_path: Path) -> None:
    content = content_in(state, tmp_path / "memory")
    content.parent.rename(tmp_path / "elsewhere")
    content.parent.symlink_to(tmp_path / "elsewhere")
    os.lchown(content.parent, 65534, 65534)
    for attempt in (state.attach, lambda: delete(state)):
        with pytest.raises(Problem) as refused:
            attempt()
        assert f"is reached through {content.parent}, a symbolic link of the user 65534" in refused.value.detail
    assert content.exists()
    os.lchown(content.parent, 0, 0)
    state.attach()
    assert delete(state) == []
    assert not content.exists()
