"""Simulated power cuts: the states of a directory that POSIX allows after a loss of power.

A file's content is durable as of its last fsync, a directory's names as of the directory's own fsync. Any subset of the
later changes may survive. In a file, each sector of 512 bytes is as it was, as it became, or zeros where there was none
before; in a directory, each name survives or not by itself, but a renamed file has exactly one of its two names.
File systems promise more in places (ext4 keeps the name of a new file that is synced); none of that is assumed here.

A `Disk` watches the calls by which its own thread changes the files below a directory, and can ignore the fsyncs of
one `Site`: if no test fails then, that fsync is needless, or a test is missing.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any
from unittest import mock

from testkit.checkout import ROOT

SECTOR_BYTES = 512
#: Calls of `os` that change what is on a disk; writes of Python's file objects are seen when the files are synced.
CALLS = ("write", "ftruncate", "fsync", "fdatasync", "rename", "replace", "unlink", "mkdir", "rmdir")
SYNCS = ("fsync", "fdatasync")
_PACKAGE = ROOT / "service" / "cliffwatch"
#: Modules that sync on behalf of their callers.
_HELPERS = ("base/durable.py",)

Place = tuple[int, str]


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """An fsync in the service: its module, its function, and the name of what is synced."""

    module: str
    function: str
    synced: str

    def __str__(self) -> str:
        return f"{self.module} {self.function}: {self.synced}"


@dataclass(slots=True)
class Disk:
    """Simulated disk that holds the directory `root`, whose content counts as durable at first.

    `moment` is called before each change and may call `image`. `sites` are the places of the fsyncs that were seen; an
    fsync at the site `forgotten` makes nothing durable.
    """

    root: Path
    random: Random
    moment: Callable[["Disk"], None]
    forgotten: Site | None = None
    sites: set[Site] = field(default_factory=set)
    _content: dict[int, bytes] = field(default_factory=dict)
    _names: dict[int, dict[str, int]] = field(default_factory=dict)
    #: Descriptors by inode, kept open so that no inode number is given to another file.
    _held: dict[int, int] = field(default_factory=dict)
    _is_paused: bool = False

    @contextmanager
    def watched(self) -> Iterator["Disk"]:
        """Watch the changes that this thread makes while the block lasts."""
        for path in (self.root, *self.root.rglob("*")):
            self._keep(path)
        try:
            with ExitStack() as patched:
                for name in CALLS:
                    patched.enter_context(mock.patch.object(os, name, self._watching(name)))
                yield self
        finally:
            for descriptor in self._held.values():
                os.close(descriptor)

    def pause(self, look: Callable[[], None]) -> None:
        """Call `look` without watching the changes that it makes."""
        self._is_paused = True
        try:
            look()
        finally:
            self._is_paused = False

    def image(self, place: Path) -> Path:
        """Make the directory `place`, in one of the states in which a power cut may leave `root` now."""
        live = _Tree(self.root)
        chosen = self._choose(live)
        place.mkdir()
        self._lay_out(live, chosen, self.root.stat().st_ino, place)
        return place

    def _watching(self, name: str) -> Callable[..., Any]:
        real, watching = getattr(os, name), threading.get_ident()

        def call(*arguments: Any, **options: Any) -> Any:
            # Threads of services that other tests keep are not of this disk, and would see what it does in between.
            if self._is_paused or threading.get_ident() != watching:
                return real(*arguments, **options)
            self.pause(lambda: self.moment(self))
            if name not in SYNCS:
                return real(*arguments, **options)
            path = Path(f"/proc/self/fd/{arguments[0]}").readlink()
            if path.is_relative_to(self.root):
                site = _site(path, sys._getframe(1))
                self.sites.add(site)
                if site != self.forgotten:
                    self._keep(path)
            return None

        return call

    def _keep(self, path: Path) -> None:
        """Record the present content of a file, or the names in a directory, as durable."""
        found = path.stat()
        if found.st_ino not in self._held:
            self._held[found.st_ino] = os.open(path, os.O_RDONLY)
        if path.is_dir():
            self._names[found.st_ino] = {entry.name: entry.inode() for entry in os.scandir(path)}
            # A file whose name is durable may have no durable content.
            for entry in os.scandir(path):
                if entry.inode() not in self._held:
                    self._held[entry.inode()] = os.open(entry.path, os.O_RDONLY)
        else:
            self._content[found.st_ino] = path.read_bytes()

    def _choose(self, live: "_Tree") -> dict[Place, int]:
        """Choose at random the names that survive the cut; returns the inode by directory inode and name."""
        durable = {(parent, name): inode for parent, names in self._names.items() for name, inode in names.items()}
        before = {inode: place for place, inode in durable.items()}
        chosen: dict[Place, int] = {place: inode for place, inode in durable.items() if live.names.get(place) == inode}
        changed = [place for place in {**durable, **live.names} if place not in chosen]
        # The old name of a renamed file is decided on together with its new name.
        for place in sorted(changed, key=lambda place: place not in live.names):
            old, new = durable.get(place), live.names.get(place)
            given_up = before.get(new) if new is not None else None
            if given_up is not None and live.names.get(given_up) == new:
                given_up = None  # another link
            if new is not None and self.random.random() < 0.5:
                chosen[place] = new
            elif new is not None:
                if old is not None:
                    chosen[place] = old
                if given_up is not None:
                    chosen[given_up] = new
            elif old is not None and place not in chosen and old not in live.inodes and self.random.random() < 0.5:
                chosen[place] = old
        return chosen

    def _lay_out(self, live: "_Tree", chosen: dict[Place, int], directory: int, place: Path) -> None:
        for (parent, name), inode in chosen.items():
            if parent != directory:
                continue
            if inode in self._names or inode in live.directories:
                (place / name).mkdir()
                self._lay_out(live, chosen, inode, place / name)
            else:
                (place / name).write_bytes(self._torn(self._content.get(inode, b""), live.content(inode)))

    def _torn(self, old: bytes, new: bytes | None) -> bytes:
        """Content of a file after the cut: `old` is durable; `new` is its later content, None if it was removed."""
        if new is None or new == old:
            return old
        fate = self.random.random()
        if fate < 0.5:
            return old if fate < 0.25 else new
        length = self.random.choice((len(old), len(new), self.random.randint(*sorted((len(old), len(new))))))
        sectors = []
        for at in range(0, length, SECTOR_BYTES):
            until = min(at + SECTOR_BYTES, length)
            source = self.random.choice((old, new))
            sectors.append(source[at:until].ljust(until - at, b"\0"))
        return b"".join(sectors)


class _Tree:
    """Names, inodes and contents below a directory as the running system shows them, synced or not."""

    def __init__(self, root: Path) -> None:
        self.names: dict[Place, int] = {}
        self.directories: set[int] = set()
        self._paths: dict[int, Path] = {}
        self._walk(root)

    @property
    def inodes(self) -> set[int]:
        return set(self._paths)

    def content(self, inode: int) -> bytes | None:
        """Present content of a file; None when it was removed."""
        path = self._paths.get(inode)
        return None if path is None else path.read_bytes()

    def _walk(self, directory: Path) -> None:
        own = directory.stat().st_ino
        self.directories.add(own)
        for entry in os.scandir(directory):
            self.names[own, entry.name] = entry.inode()
            self._paths[entry.inode()] = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                self._walk(Path(entry.path))


def _site(path: Path, frame: FrameType | None) -> Site:
    """Site of an fsync: the nearest caller in the service that is not a helper, else the outermost helper."""
    nearest = None
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(_PACKAGE):
            module = str(file.relative_to(_PACKAGE))
            nearest = Site(module, frame.f_code.co_qualname, _named(path))
            if module not in _HELPERS:
                return nearest
        frame = frame.f_back
    assert nearest is not None, f"{path} is not synced by the service"
    return nearest


def _named(path: Path) -> str:
    """Name of what is synced; without the process id in a temporary file's name, so that every process has the same."""
    if path.is_dir():
        return "the directory"
    return path.name.lstrip(".").removesuffix(f".{os.getpid()}")
