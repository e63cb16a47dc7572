"""A file system on a drive, for a database that cannot always be written."""

from testkit.drives import volume

__all__ = ["volume"]
