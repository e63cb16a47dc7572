"""The committed dashboards, and their queries as Grafana would send them."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testkit.checkout import ROOT

DIRECTORY = ROOT / "dashboards" / "json"
PROVISIONING = ROOT / "dashboards" / "provisioning"
PATHS = sorted(DIRECTORY.glob("*.json"))
_KEYWORDS = frozenset({"and", "or", "unless", "bool", "offset", "by", "on", "Inf"})


@dataclass(frozen=True, slots=True)
class PanelQuery:
    """A query with its variables in it; `repeat` names the one that Grafana repeats the panel for."""

    where: str
    expression: str
    repeat: str | None = None

    def rendered(self, values: Mapping[str, str]) -> str:
        """With each `$name` replaced, but for `$1`, which is PromQL's. Fails for a variable that has no value."""
        return re.sub(r"\$\{?([a-z_]\w*)\}?", lambda found: values[found[1]], self.expression)

    def metrics(self) -> set[str]:
        """Names of the series that it reads."""
        text = re.sub(r'"[^"]*"|\[[^]]*\]|offset -?(\d+\w|\$\{\w+\}s)', "", self.expression)
        text = re.sub(r"\{[^}]*\}", " ", text)
        text = re.sub(r"\b(by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)", " ", text)
        return set(re.findall(r"[a-zA-Z_:][\w:]*(?!\w|\s*\()", text)) - _KEYWORDS


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable whose values Prometheus is asked for: those of `label`, or what `regex` finds in a query's result.

    `sort` is Grafana's number: 0 for the order of the answer, 1 for ascending names, 2 for descending ones.
    """

    name: str
    query: PanelQuery
    label: str | None
    regex: str | None
    several: bool
    default: str | None
    sort: int

    def in_order(self, values: Iterable[str]) -> list[str]:
        """The values, each once, in the order in which Grafana offers them; it opens with the first."""
        unique = dict.fromkeys(values)
        return list(unique) if self.sort == 0 else sorted(unique, reverse={1: False, 2: True}[self.sort])


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


def panel_queries(document: dict[str, Any]) -> Iterator[PanelQuery]:
    for panel in panels(document):
        for target in panel["targets"]:
            yield PanelQuery(f"{panel['title']} {target['refId']}", target["expr"], panel.get("repeat"))


def queries(document: dict[str, Any]) -> Iterator[PanelQuery]:
    yield from panel_queries(document)
    for annotation in document["annotations"]["list"]:
        yield PanelQuery(f"annotation {annotation['name']}", annotation["expr"])


def variable_names(document: dict[str, Any]) -> set[str]:
    return {variable["name"] for variable in document["templating"]["list"]}


def variables(document: dict[str, Any]) -> list[Variable]:
    """Those that are asked from Prometheus, in the order in which Grafana asks."""
    found = []
    for variable in document["templating"]["list"]:
        if variable["type"] != "query":
            continue
        name, where = variable["name"], f"variable {variable['name']}"
        several, sort = variable.get("includeAll", False), variable.get("sort", 0)
        default = variable.get("current", {}).get("value") if not several else None
        if matched := re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]):
            found.append(Variable(name, PanelQuery(where, matched[1]), matched[2], None, several, default, sort))
            continue
        matched = re.fullmatch(r"query_result\((.+)\)", variable["query"])
        assert matched, f"{name}: {variable['query']} is neither label_values nor query_result"
        regex = re.fullmatch("/(.+)/", variable["regex"])
        assert regex, f"{name}: {variable['regex']} is not a regular expression"
        found.append(Variable(name, PanelQuery(where, matched[1]), None, regex[1], several, default, sort))
    return found


def choices_by_hand(document: dict[str, Any]) -> dict[str, str]:
    """The defaults of variables whose choices are listed and not queried."""
    return {
        variable["name"]: variable["current"]["value"]
        for variable in document["templating"]["list"]
        if variable["type"] == "custom"
    }


def links(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    """Where it is, address, and its panel if it is one of a panel's data."""
    for link in document["links"]:
        yield f"link {link['title']}", link["url"], None
    for panel in panels(document):
        for override in panel.get("fieldConfig", {}).get("overrides", []):
            for each in override["properties"]:
                if each["id"] == "links":
                    for link in each["value"]:
                        yield f"{panel['title']}: {link['title']}", link["url"], panel
