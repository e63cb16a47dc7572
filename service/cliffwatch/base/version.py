"""Version of Cliffwatch. The number is in the workspace's Cargo.toml, from which installation takes it."""

from importlib.metadata import version

VERSION = version("cliffwatch")
