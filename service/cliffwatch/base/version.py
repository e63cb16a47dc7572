"""Which Cliffwatch this is. The number is in the workspace's Cargo.toml, from which installing takes it."""

from importlib.metadata import version

VERSION = version("cliffwatch")
