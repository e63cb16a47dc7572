"""Directory of an aging drive: `drives/<name>/` in the state directory, which holds everything of the drive.

drive.json      requested settings: serial, file system, mount options, and the process that the drive is kept for
profile.yaml    the modelled drive, as `cliffwatch-drive mount --profile` reads it
content         the sparse file with the drive's data; content.state is the age of the flash
flash/          where the drive's file is served
files/          where its file system is mounted
ready.json      output of the serving process when it became ready; output.log has its other output
alive           locked by the serving process for as long as it lives
turn            locked by the process that attaches or detaches
"""

import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cliffwatch.base import locks
from cliffwatch.base.durable import write_durably
from cliffwatch.base.errors import Code, Problem
from cliffwatch.labs.aging.description import (
    UNPARTITIONED_MAXIMUM,
    Description,
    read_description,
    write_description,
)

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True, slots=True)
class DriveDirectory:
    """The directory of one drive."""

    directory: Path

    @property
    def name(self) -> str:
        return self.directory.name

    @property
    def description(self) -> Path:
        return self.directory / "drive.json"

    @property
    def profile(self) -> Path:
        return self.directory / "profile.yaml"

    @property
    def content(self) -> Path:
        return self.directory / "content"

    @property
    def age(self) -> Path:
        return self.directory / "content.state"

    @property
    def flash(self) -> Path:
        return self.directory / "flash"

    @property
    def file(self) -> Path:
        """Path of the drive's file, which the loop device is attached to."""
        return self.flash / "drive"

    @property
    def files(self) -> Path:
        return self.directory / "files"

    @property
    def ready(self) -> Path:
        return self.directory / "ready.json"

    @property
    def log(self) -> Path:
        return self.directory / "output.log"

    def exists(self) -> bool:
        return self.description.exists()

    def why_foreign(self) -> str | None:
        """Why this directory is no drive's, so that nothing may be made or removed in it; None if it is a drive's.

        Attaching a drive first makes the file `turn`, so a directory with other files, but neither `turn` nor a
        description, belongs to no drive. None also if the directory is empty or does not exist.
        """
        try:
            mode = self.directory.lstat().st_mode
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(mode):
            return f"{self.directory} is a symbolic link"
        if not stat.S_ISDIR(mode):
            return f"{self.directory} is not a directory"
        names = {entry.name for entry in self.directory.iterdir()}
        return f"{self.directory} is not a drive's directory" if names and not names & {"drive.json", "turn"} else None

    def check_description(self) -> None:
        """Raises Problem(drive_invalid) if the drive has content, but its description (drive.json) was lost."""
        if self.content.exists() and not self.exists():
            detail = (
                f"the description {self.description} is lost, and {self.content} is kept; put it back, "
                f"or delete the drive and its content with: cliffwatch drive detach {self.name} --delete"
            )
            raise Problem(Code.DRIVE_INVALID, detail)

    def holds_data(self) -> bool:
        """Whether the drive was ever written to: its content file has data, and not only holes."""
        with self.content.open("rb") as content:
            try:
                os.lseek(content.fileno(), 0, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return False
                raise
        return True

    def make(self, description: Description, profile_yaml: str, content_directory: Path | None) -> None:
        """Make the drive's directories, profile and description; the drive exists when this returns.

        Its content goes into `content_directory` if that is given.
        """
        for directory in (self.flash, self.files):
            directory.mkdir(parents=True, exist_ok=True)
        write_durably(self.profile, profile_yaml)
        if self.content.is_symlink():
            # A dangling link: the process that made it was killed before the drive existed.
            self.content.unlink()
        if content_directory is not None:
            self.content.symlink_to(content_directory / f"cliffwatch-drive-{description.serial}")
        self.write(description)

    def read(self) -> Description:
        """Read the drive's description. Raises Problem(drive_invalid) when it cannot be read."""
        try:
            return read_description(self.description)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            detail = (
                f"{self.description} cannot be used ({reason}); put it right, "
                f"or delete the drive and its content with: cliffwatch drive detach {self.name} --delete"
            )
            raise Problem(Code.DRIVE_INVALID, detail) from error

    def write(self, description: Description) -> None:
        write_description(self.description, description)

    def served(self) -> dict[str, Any] | None:
        """Output of the serving process when it was ready (`file`, `size_bytes`, `url`, `pid`); None before."""
        try:
            body: dict[str, Any] = json.loads(self.ready.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return body

    def is_served(self) -> bool:
        """Whether the serving process lives: the kernel releases its lock at the moment it dies."""
        return locks.is_held(self.directory / "alive")

    def is_changing(self) -> bool:
        """Whether a process attaches or detaches the drive at the moment."""
        return locks.is_held(self.directory / "turn")

    def lock_for_serving(self) -> int:
        """A descriptor that holds the serving process's lock, for that process to inherit."""
        # Waits, since `is_served` of another process holds this lock for an instant.
        return locks.hold(self.directory / "alive")

    @contextmanager
    def exclusive_change(self) -> Iterator[None]:
        """Lock the drive against attaching and detaching by other processes, until the block ends.

        Raises Problem(conflict) when another process holds the lock, or when the directory is not a drive's.
        """
        if foreign := self.why_foreign():
            raise Problem(Code.CONFLICT, f"{foreign}; use another name, or move it away")
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            lock = locks.hold(self.directory / "turn", patience_seconds=0)
        except TimeoutError as error:
            detail = f"another command is attaching or detaching the drive {self.name}; wait until it has ended"
            raise Problem(Code.CONFLICT, detail) from error
        try:
            yield
        finally:
            os.close(lock)


def drives_directory(state_directory: Path) -> Path:
    """Directory of all drives, as the kernel names it in mounts and loop devices: without links in its path."""
    return state_directory.resolve() / "drives"


def place_of(state_directory: Path, name: str) -> DriveDirectory:
    """Directory of the drive with this name. Raises Problem(drive_invalid) for an invalid name."""
    if not _NAME.fullmatch(name):
        detail = f"{name!r} cannot be a drive's name; use up to 40 of a-z, 0-9 and -, beginning with a letter or digit"
        raise Problem(Code.DRIVE_INVALID, detail)
    return DriveDirectory(drives_directory(state_directory) / name)


def places(state_directory: Path) -> list[DriveDirectory]:
    """Directories of all drives, including incompletely made ones, sorted by name."""
    found = [DriveDirectory(entry) for entry in _entries(state_directory) if _NAME.fullmatch(entry.name)]
    return [place for place in found if place.why_foreign() is None]


def foreign_entries(state_directory: Path) -> list[str]:
    """Entries of the directory `drives` that are not drives, each as a sentence with the reason."""
    own = {place.directory for place in places(state_directory)}
    others = [entry for entry in _entries(state_directory) if entry not in own]
    return [DriveDirectory(entry).why_foreign() or f"{entry} is not a drive's directory" for entry in others]


def _entries(state_directory: Path) -> list[Path]:
    directory = drives_directory(state_directory)
    return sorted(directory.iterdir()) if directory.is_dir() else []


def check_unpartitioned(share: float) -> float:
    """Return `share` unchanged. Raises Problem(drive_invalid) unless it is from 0 to UNPARTITIONED_MAXIMUM."""
    if not 0.0 <= share <= UNPARTITIONED_MAXIMUM:
        detail = f"--unpartitioned: {share:g} is not a share of the drive; give 0 to {UNPARTITIONED_MAXIMUM:g}"
        raise Problem(Code.DRIVE_INVALID, detail)
    return share
