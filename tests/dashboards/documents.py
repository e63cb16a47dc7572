"""The committed dashboards, and their queries as Grafana would send them."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DIRECTORY = ROOT / "dashboards" / "json"
PROVISIONING = ROOT / "dashboards" / "provisioning"
PATHS = sorted(DIRECTORY.glob("*.json"))


@dataclass(frozen=True, slots=True)
class PanelQuery:
    """A query with its variables in it; `repeat` names the one that Grafana repeats the panel for."""

    where: str
    expression: str
    repeat: str | None = None

    def rendered(self, values: dict[str, str]) -> str:
        """With each `$name` replaced. Fails for a variable that has no value."""
        return re.sub(r"\$\{?(\w+)\}?", lambda found: values[found[1]], self.expression)

    def metrics(self) -> set[str]:
        """Names of the series that it reads."""
        text = re.sub(r'"[^"]*"|\[[^]]*\]', "", self.expression)
        text = re.sub(r"\{[^}]*\}", " ", text)
        text = re.sub(r"\b(by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)", " ", text)
        words = re.findall(r"[a-zA-Z_:][\w:]*(?!\w|\s*\()", text)
        return {word for word in words if word not in {"and", "or", "unless", "bool", "offset", "by", "on"}}


def load(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def panels(document: dict[str, Any]) -> list[dict[str, Any]]:
    """All but the headings of rows."""
    return [panel for panel in document["panels"] if panel["type"] != "row"]


def unit(panel: dict[str, Any]) -> str | None:
    if panel["type"] == "heatmap":
        found: str | None = panel["options"]["yAxis"].get("unit")
    else:
        found = panel["fieldConfig"]["defaults"].get("unit")
    return found


def queries(document: dict[str, Any]) -> Iterator[PanelQuery]:
    for panel in panels(document):
        for target in panel["targets"]:
            yield PanelQuery(f"{panel['title']} {target['refId']}", target["expr"], panel.get("repeat"))
    for annotation in document["annotations"]["list"]:
        yield PanelQuery(f"annotation {annotation['name']}", annotation["expr"])


def variables(document: dict[str, Any]) -> dict[str, tuple[PanelQuery, str]]:
    """Of each variable that is asked from Prometheus: the series, and their label that holds the values."""
    found = {}
    for variable in document["templating"]["list"]:
        if variable["type"] == "query":
            matched = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"])
            assert matched, f"{variable['name']}: {variable['query']} is not label_values(series, label)"
            found[variable["name"]] = (PanelQuery(f"variable {variable['name']}", matched[1]), matched[2])
    return found
