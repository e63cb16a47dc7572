"""A file system so small that a test can fill it, and free it again."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """A tmpfs of a few MiB, mounted at `path`."""

    path: Path

    def fill(self) -> None:
        """Fill the file system to the last byte."""
        with self._ballast.open("ab", buffering=0) as file:
            for piece in (1 << 16, 1 << 12, 1):
                try:
                    while file.write(b"\0" * piece) == piece:
                        pass
                except OSError:
                    continue

    def free(self) -> None:
        self._ballast.unlink()

    @property
    def _ballast(self) -> Path:
        return self.path / "ballast"


@contextmanager
def small_disk(path: Path, size_bytes: int = 4 << 20) -> Iterator[SmallDisk]:
    """Mount a tmpfs of this size at `path` while the block lasts. Needs root."""
    path.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "cliffwatch-test", str(path)], check=True)
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
