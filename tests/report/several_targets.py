"""Recorded runs on several targets."""

import json
from collections.abc import Sequence
from pathlib import Path

from cliffwatch.journal import files

PARTS = ["left", "right"]


def ordered_on(directory: Path, parts: Sequence[str]) -> Path:
    """The journal of a run that was asked for on a target for each of these parts."""
    order = json.loads((directory / files.ORDER).read_text())
    more = [{"kind": "synthetic", "name": f"other-{number}"} for number in range(1, len(parts))]
    order |= {"more_targets": more, "part_names": list(parts)}
    (directory / files.ORDER).write_text(json.dumps(order))
    return directory


def ordered_on_two(directory: Path) -> Path:
    return ordered_on(directory, PARTS)
