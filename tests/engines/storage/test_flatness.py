"""What a load costs does not grow with time: memory and open files over tens of thousands of segments.

`python -m bench storage-rolls` does the same with a million.
"""

from bench.storage_rolls import OPEN_FILES, roll


def test_memory_and_open_files_are_flat_over_many_segments() -> None:
    before, after = roll(20_000)
    assert after.rolls - before.rolls > 15_000
    assert after.resident_bytes - before.resident_bytes < 1024 * 1024
    assert max(before.open_files, after.open_files) <= OPEN_FILES
