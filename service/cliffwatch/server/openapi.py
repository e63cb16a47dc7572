"""OpenAPI description of the API, kept in openapi.json; `python -m cliffwatch.server.openapi` writes it anew."""

import json
import tempfile
from pathlib import Path

from cliffwatch.model.settings import read_settings
from cliffwatch.server.app import create_app

GOLDEN = Path(__file__).with_name("openapi.json")


def render() -> str:
    """Text of the OpenAPI document for openapi.json, always the same for the same API."""
    with tempfile.TemporaryDirectory() as directory:
        app = create_app(read_settings(state_directory=Path(directory)))
    return json.dumps(app.openapi(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    GOLDEN.write_text(render(), encoding="utf-8")
