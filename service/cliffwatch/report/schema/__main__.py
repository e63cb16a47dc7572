"""`python -m cliffwatch.report.schema`: generate the published report.schema.json from the types."""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from cliffwatch.report.schema.report import FORMAT_VERSION, ReportDocument

PUBLISHED = Path(__file__).parents[1] / "report.schema.json"


def schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of report.json."""
    made: dict[str, Any] = _without_titles(TypeAdapter(ReportDocument).json_schema())
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:cliffwatch:report:{FORMAT_VERSION}",
        "title": f"Cliffwatch run report, format {FORMAT_VERSION}",
    }
    return head | made


def _without_titles(node: Any) -> Any:
    """Remove titles from a JSON Schema: Pydantic gives each field its own name as a title."""
    if isinstance(node, list):
        return [_without_titles(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {name: _without_titles(each) for name, each in node.items() if name != "title" or not isinstance(each, str)}


if __name__ == "__main__":
    PUBLISHED.write_text(json.dumps(schema(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
