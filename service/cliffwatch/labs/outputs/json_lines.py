"""Read JSON objects from text: one a line, or over several lines from `{` to `}` alone on their lines."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from cliffwatch.labs.outputs.rows import BadLineError


def json_objects(lines: Iterable[str], of: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects of a file with the number of the line that ends each. `of`: their kind, for errors. Lines that do not
    begin an object are passed over, and so is an object that the end of the file cuts off. Raises BadLineError."""
    held: list[str] = []
    damaged: BadLineError | None = None
    for number, line in enumerate(lines, start=1):
        if damaged is not None and line.strip():
            raise damaged
        if held or line.rstrip() == "{":
            held.append(line)
            if line.rstrip() != "}":
                continue
        elif not line.startswith("{"):
            continue
        try:
            found = json.loads("\n".join(held) or line)
        except (ValueError, RecursionError) as error:
            damaged = BadLineError(number, f"is no object of {of} that can be read ({error}); write the file anew")
        else:
            yield number, found
        held = []
