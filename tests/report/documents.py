"""Documents of reports."""

import json
from pathlib import Path
from typing import Any

import jsonschema

from cliffwatch import report as report_package
from cliffwatch.report.build import build

SCHEMA = json.loads((Path(report_package.__file__).parent / "report.schema.json").read_text())


def document_of(directory: Path) -> dict[str, Any]:
    """The report's document, once it is known to be of the schema."""
    document: dict[str, Any] = json.loads(json.dumps(build(directory).document))
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document
