"""The result of one attempt to collect telemetry: the line that its process prints for the worker."""

import json
from dataclasses import dataclass

from cliffwatch.base.finite_json import lenient_json


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one attempt; `missing` is why the telemetry is incomplete, empty when it is complete."""

    rows: int = 0
    parts: int = 0
    missing: str = ""

    def to_line(self) -> str:
        return json.dumps({"rows": self.rows, "parts": self.parts, "missing": self.missing}) + "\n"

    @classmethod
    def from_line(cls, line: str | bytes) -> "Result":
        """Parse a result. Raises ValueError when the line is not a result."""
        body, _ = lenient_json(line)
        try:
            return cls(int(body["rows"]), int(body["parts"]), str(body["missing"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a result: {error!r}") from error
