"""python -m dashboards.builder: write dashboards/json anew."""

import json
from pathlib import Path
from typing import Any

from dashboards.builder.run import annotations, run_dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

DIRECTORY = Path(__file__).resolve().parents[1] / "json"


def documents() -> dict[str, dict[str, Any]]:
    """Each dashboard's JSON document, by the name of its file."""
    run: dict[str, Any] = json.loads(json.dumps(run_dashboard().build(), cls=JSONEncoder))
    for panel in run["panels"]:
        if panel["type"] == "heatmap":
            # How Grafana 9 is told to show what is below the pointer.
            panel["options"]["tooltip"]["show"] = True
    return {"run.json": run | {"annotations": {"list": annotations()}}}


def text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    DIRECTORY.mkdir(exist_ok=True)
    for name, document in documents().items():
        (DIRECTORY / name).write_text(text(document), encoding="utf-8")
