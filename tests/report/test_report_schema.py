"""The published schema of report.json is made of the types that the program uses."""

import json

from jsonschema.validators import Draft202012Validator

from cliffwatch.report.schema.__main__ import PUBLISHED, schema


def test_the_published_schema_is_that_of_the_types() -> None:
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == schema(), "write it anew: make openapi"
    Draft202012Validator.check_schema(schema())


def test_every_object_names_its_fields_and_says_what_they_are() -> None:
    made = schema()
    for name, each in {"ReportDocument": made, **made["$defs"]}.items():
        assert each["additionalProperties"] is False, name
    finding = made["$defs"]["FindingDocument"]
    assert finding["properties"]["ratio"]["description"] == "Level divided by baseline."
    assert finding["dependentRequired"] == {
        "runner_up": ["cause"],
        "tell_apart": ["cause"],
        "detected": ["detected_seconds"],
    }
