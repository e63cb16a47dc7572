"""A state directory on a network share."""

from pathlib import Path

import pytest

from cliffwatch.app.state_place import note_on_place
from cliffwatch.machine.mounts import mount_of


def proc_with(directory: Path, file_system: str) -> Path:
    """A /proc whose mount of the directory is of that file system: this machine has no server of shares."""
    mount = mount_of(directory)
    proc = directory / "proc"
    (proc / "self").mkdir(parents=True, exist_ok=True)
    line = f"{mount.mount_id} 1 0:90 / {mount.mount_point} rw,relatime shared:1 - {file_system} server:/state rw\n"
    (proc / "self" / "mountinfo").write_text(line)
    return proc


@pytest.mark.parametrize("file_system", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_share_is_said_with_what_can_be_damaged_and_the_remedy(tmp_path: Path, file_system: str) -> None:
    proc = proc_with(tmp_path, file_system)
    with_sqlite, without = (note_on_place(tmp_path, uses_sqlite, proc) for uses_sqlite in (True, False))
    for note in (with_sqlite, without):
        assert f"{tmp_path} is on a network share ({file_system})" in note
        assert "CLIFFWATCH_STATE_DIRECTORY" in note
    assert ("the database and the journals" in with_sqlite, "CLIFFWATCH_DATABASE_URL" in with_sqlite) == (True, True)
    assert "database" not in without


@pytest.mark.parametrize("file_system", ["ext4", "overlay", "tmpfs", "fuse.other"])
def test_a_disk_of_this_machine_needs_no_word(tmp_path: Path, file_system: str) -> None:
    assert note_on_place(tmp_path, True, proc_with(tmp_path, file_system)) == ""
    assert note_on_place(tmp_path / "missing", True) == ""
