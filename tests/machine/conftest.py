"""A drive for what the kernel says of drives."""

from testkit.drives import drive, volume

__all__ = ["drive", "volume"]
