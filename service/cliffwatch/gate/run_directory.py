"""A run's own directory: made by one run, marked with its id, locked while the run goes on, removed for that run only.

Everything is done relative to an open descriptor and follows no symbolic link, so that no other directory can be put in
its place between two steps.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from cliffwatch.base import locks
from cliffwatch.base.durable import PRIVATE_DIRECTORY, PRIVATE_FILE
from cliffwatch.gate.objections import Objection, require_clear
from cliffwatch.machine.descriptors import name_of, open_beneath, open_directory
from cliffwatch.machine.mounts import on_one_mount, read_mounts

MARKER = ".cliffwatch-run"
_MARKER_IN_PROGRESS = ".cliffwatch-run.new"
_MARK_MAXIMUM_BYTES = 4096

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

Ownership = Literal["absent", "unclaimed", "own", "foreign", "mounted"]


def run_directory(parent: Path, run_id: str) -> Path:
    """Path of the run's own directory, which may not exist yet."""
    return parent / f"cliffwatch-{run_id}"


def ownership(path: Path, run_id: str) -> Ownership:
    """Ownership of the directory `path`. `unclaimed`: empty or half marked, as of a run that was killed making it;
    `mounted`: of another file system than its parent, or seen through another mount."""
    if not os.path.lexists(path):
        return "absent"
    try:
        parent = open_directory(path.parent.resolve())
    except OSError:
        return "foreign"
    try:
        directory = open_beneath(parent, Path(path.name))
        try:
            return _ownership_of(parent, directory, run_id)
        finally:
            os.close(directory)
    except OSError:
        return "foreign"
    finally:
        os.close(parent)


def objections_to_own(path: Path, state: Ownership) -> list[Objection]:
    """Objection to a run's own directory that is not the run's, or where something else is mounted; else empty."""
    if state == "mounted":
        message = f"something is mounted at {path}, which is to be the run's own directory; unmount it"
        return [Objection("mounted", message)]
    if state == "foreign":
        reason = "it does not carry this run's mark, or others may write to it"
        return [Objection("foreign_directory", f"{path} is there and is not this run's own ({reason}); move it away")]
    return []


def within_a_run(real: Path) -> list[Objection]:
    """Objection to a target that is, or is inside, a run's own directory: all in it is removed when that run ends."""
    above = [path for path in (real, *real.parents) if os.path.lexists(path / MARKER)]
    message = "is the directory of a run, and all in it is removed when that ends; name another directory"
    return [Objection("foreign_directory", f"{path} {message}") for path in above[:1]]


@contextmanager
def claimed(parent: int, path: Path, run_id: str) -> Iterator[int]:
    """Create (or reopen) and lock the run's own directory `path`; `parent` is a descriptor of its parent.

    Yields a descriptor of the directory, which stays valid if the directory is renamed. Raises Problem(target_unsafe)
    when the directory is not this run's own (`ownership`), something is mounted there, or a living process holds its
    lock.
    """
    with suppress(FileExistsError), _objecting(path):
        os.mkdir(path.name, PRIVATE_DIRECTORY, dir_fd=parent)
    try:
        directory = open_beneath(parent, Path(path.name))
    except OSError:
        require_clear(objections_to_own(path, "foreign"))
        raise
    try:
        _lock(directory, path)
        state = _ownership_of(parent, directory, run_id)
        require_clear(objections_to_own(path, state))
        refuse_mounts(directory)
        if state == "unclaimed":
            with _objecting(path):
                _mark(directory, run_id)
        yield directory
    finally:
        os.close(directory)


def remove_run_directory(path: Path, run_id: str) -> None:
    """Remove the run's own directory and all in it; nothing happens when it is gone already.

    Raises Problem(target_unsafe), and removes nothing, when it is not this run's, something is mounted in it, or a
    living process holds it. The mark is removed last, so that an interrupted removal can be repeated.
    """
    try:
        parent = open_directory(path.parent.resolve())
    except FileNotFoundError:
        return
    try:
        _remove_in(parent, path, run_id)
    finally:
        os.close(parent)


def clear_run_directory(directory: int) -> None:
    """Remove all but the mark in a run's own directory, which this process holds. Raises Problem, OSError."""
    refuse_mounts(directory)
    _empty(directory)


def _remove_in(parent: int, path: Path, run_id: str) -> None:
    try:
        directory = open_beneath(parent, Path(path.name))
    except FileNotFoundError:
        return
    except OSError:
        require_clear(objections_to_own(path, "foreign"))
        raise
    try:
        is_named = path.name == run_directory(path.parent, run_id).name
        require_clear(objections_to_own(path, _ownership_of(parent, directory, run_id) if is_named else "foreign"))
        _lock(directory, path)
        refuse_mounts(directory)
        _empty(directory)
        with suppress(FileNotFoundError):
            os.unlink(MARKER, dir_fd=directory)
        # Another directory may be in its place by now, which is not removed, or none.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path.name, dir_fd=parent, follow_symlinks=False), os.fstat(directory)):
                os.rmdir(path.name, dir_fd=parent)
    finally:
        os.close(directory)


def mounted_in(directory: int) -> list[str]:
    """Mount points below a directory, given by its descriptor: files written there are on another file system."""
    path = name_of(directory)
    return [str(mount.mount_point) for mount in read_mounts() if path in mount.mount_point.parents]


def refuse_mounts(directory: int) -> None:
    """Refuse a directory with something mounted below it. Raises Problem(target_unsafe)."""
    path, inside = name_of(directory), mounted_in(directory)
    if inside:
        require_clear([Objection("mounted", f"{' and '.join(inside)} is mounted in {path}; unmount it")])


def _ownership_of(parent: int, directory: int, run_id: str) -> Ownership:
    # What is mounted there was not examined: only the parent directory was, with the drives below it.
    if not on_one_mount(parent, directory):
        return "mounted"
    status = os.fstat(directory)
    # The owner of the parent directory can give the run's name to any directory there. If others may write to it, they
    # could put links into it, which an engine would follow.
    if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_WRITE:
        return "foreign"
    names = set(os.listdir(directory))
    if not names or (names == {_MARKER_IN_PROGRESS} and _is_unfinished_mark(directory)):
        return "unclaimed"
    try:
        marker = os.open(MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    except OSError:
        return "foreign"
    try:
        return "own" if os.read(marker, _MARK_MAXIMUM_BYTES) == _mark_of(run_id) else "foreign"
    except OSError:
        return "foreign"
    finally:
        os.close(marker)


def _is_unfinished_mark(directory: int) -> bool:
    """Whether the file of an unfinished mark can be deleted: it has no other name, and is no larger than a mark."""
    status = os.stat(_MARKER_IN_PROGRESS, dir_fd=directory, follow_symlinks=False)
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_size <= _MARK_MAXIMUM_BYTES


def _mark_of(run_id: str) -> bytes:
    return f"{run_id}\n".encode()


def _mark(directory: int, run_id: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(_MARKER_IN_PROGRESS, dir_fd=directory)
    marker = os.open(_MARKER_IN_PROGRESS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE, dir_fd=directory)
    try:
        os.write(marker, _mark_of(run_id))
        os.fsync(marker)
    finally:
        os.close(marker)
    os.rename(_MARKER_IN_PROGRESS, MARKER, src_dir_fd=directory, dst_dir_fd=directory)
    os.fsync(directory)


@contextmanager
def _objecting(path: Path) -> Iterator[None]:
    """Turn an error on creating the run's own directory into an objection to the target: a retry would fail too."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        remedies = {errno.ENOSPC: "make room, of inodes too", errno.EDQUOT: "raise the quota"}
        remedy = remedies.get(error.errno or 0, "see that its file system is well and lets this user write")
        message = f"the run's own directory {path} cannot be made: {error.strerror}; {remedy}"
        require_clear([Objection("not_writable", message)])


def _lock(directory: int, path: Path) -> None:
    try:
        locks.take(directory, path, patience_seconds=0)
    except TimeoutError:
        require_clear([Objection("in_use", f"a living process holds {path}; wait until it ends")])
    except OSError as error:
        require_clear([Objection("not_writable", f"{path} cannot be locked: {error.strerror}; use a local directory")])


def _empty(directory: int) -> None:
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name != MARKER]
    for name, is_directory in found:
        if is_directory:
            shutil.rmtree(name, dir_fd=directory)
        else:
            os.unlink(name, dir_fd=directory)
