"""A drive, and a file system on one, for tests of whether it may be written to."""

from testkit.drives import drive, volume

__all__ = ["drive", "volume"]
