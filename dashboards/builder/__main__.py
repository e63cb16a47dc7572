"""python -m dashboards.builder: write dashboards/json anew."""

import json
from pathlib import Path
from typing import Any

from dashboards.builder import compare, drive, layers, run, runs, watcher

DIRECTORY = Path(__file__).resolve().parents[1] / "json"
BUILDERS = {
    "runs": runs.document,
    "run": run.document,
    "layers": layers.document,
    "drive": drive.document,
    "compare": compare.document,
    "watcher": watcher.document,
}


def documents() -> dict[str, dict[str, Any]]:
    """Each dashboard's JSON document, by the name of its file."""
    return {f"{name}.json": build() for name, build in BUILDERS.items()}


def text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    DIRECTORY.mkdir(exist_ok=True)
    for name, document in documents().items():
        (DIRECTORY / name).write_text(text(document), encoding="utf-8")
