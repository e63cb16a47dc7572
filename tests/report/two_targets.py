"""Recorded runs on two targets."""

import json
from pathlib import Path

from cliffwatch.journal import files

PARTS = ["left", "right"]


def ordered_on_two(directory: Path) -> Path:
    """The journal of a run that was asked for on two targets, with the parts left and right."""
    order = json.loads((directory / files.ORDER).read_text())
    order |= {"more_targets": [{"kind": "synthetic", "name": "other"}], "part_names": PARTS}
    (directory / files.ORDER).write_text(json.dumps(order))
    return directory
