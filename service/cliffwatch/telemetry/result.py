"""The result of one attempt to collect telemetry: the line that its process prints for the worker."""

import json
from dataclasses import dataclass

from cliffwatch.base.finite_json import lenient_json


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one attempt; `missing` says why it is not everything, and is empty when it is."""

    rows: int = 0
    parts: int = 0
    missing: str = ""

    def to_line(self) -> str:
        return json.dumps({"rows": self.rows, "parts": self.parts, "missing": self.missing}) + "\n"

    @classmethod
    def from_line(cls, line: str | bytes) -> "Result":
        """Parse a result. Raises ValueError when the line is none."""
        body, _ = lenient_json(line)
        try:
            return cls(int(body["rows"]), int(body["parts"]), str(body["missing"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a result: {error!r}") from error
