"""The golden exposition of a worker."""

from pathlib import Path

GOLDEN = Path(__file__).with_name("exposition.txt")


START = 1_790_000_000.0
