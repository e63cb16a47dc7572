import json
import re
from pathlib import Path

from cliffwatch.base.errors import KINDS, Code
from cliffwatch.server.openapi import GOLDEN, render

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_api_is_what_its_golden_description_says() -> None:
    assert json.loads(render()) == json.loads(GOLDEN.read_text()), (
        "the API has changed; if that is wanted: python -m cliffwatch.server.openapi"
    )
    assert render() == GOLDEN.read_text()


def test_every_operation_is_named_and_described() -> None:
    document = json.loads(render())
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    assert all(operation["description"] for operation in operations)


def test_every_error_code_is_explained_with_a_remedy() -> None:
    text = (DOCS / "errors.md").read_text()
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    headings = [section.splitlines()[0] for section in sections]
    assert headings == [f"`{code.value}` ({KINDS[code].status})" for code in Code]
    for section in sections:
        assert "**What to do:**" in section


def test_the_page_on_the_api_names_every_route() -> None:
    text = (DOCS / "api.md").read_text()
    for path in json.loads(render())["paths"]:
        assert f"`{path.removeprefix('/api/v1')}`" in text, path
