"""Warn of a state directory on a network share, where SQLite's locks and fsync are not reliable."""

from pathlib import Path

from cliffwatch.machine.mounts import mount_of

#: Types of file systems on a network, as the kernel calls them.
_SHARES = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "lustre", "nfs", "nfs4", "smb3", "smbfs"}
    | {"fuse.glusterfs", "fuse.mfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"}
)


def note_on_place(state_directory: Path, uses_sqlite: bool, proc: Path = Path("/proc")) -> str:
    """Warning if the state directory is on a network share; empty if it is not, or its file system is unknown."""
    try:
        file_system = mount_of(state_directory, proc).file_system
    except OSError:
        return ""
    if file_system not in _SHARES:
        return ""
    what = "the database and the journals" if uses_sqlite else "the journals"
    also = ", and the database to PostgreSQL or there, too (CLIFFWATCH_DATABASE_URL)" if uses_sqlite else ""
    return (
        f"the state directory {state_directory} is on a network share ({file_system}), where locks may not hold and "
        f"what was written may be lost: {what} can be damaged. Move it to a disk of this machine "
        f"(CLIFFWATCH_STATE_DIRECTORY){also}"
    )
