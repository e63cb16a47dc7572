"""Pages of runs whose journal or report is damaged: what cannot be read is left out."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from cliffwatch.journal import Event, EventType
from cliffwatch.web.firing import FiringAlert
from cliffwatch.web.run_now import _reported

pytestmark = pytest.mark.gate(why="neither a browser nor a service")


@pytest.mark.parametrize(
    "detail",
    [{}, {"starts_at": "soon", "labels": [1]}, {"starts_at": {}, "labels": "x"}, {"starts_at": -1e300}],
    ids=str,
)
def test_an_alert_without_what_it_should_have_is_listed(detail: dict[str, Any]) -> None:
    shown = FiringAlert.of_event(Event(5.0, EventType.ALERT, "CliffwatchLatencyCliff", detail))
    assert (shown.starts_at, shown.names_a_run, shown.runbook) == (5.0, False, "/runbooks/CliffwatchLatencyCliff")


@pytest.mark.parametrize("report", [[], {}, {"limits": 7}, {"limits": [{}]}, {"limits": [{"broken": [7]}]}], ids=str)
def test_limits_of_a_damaged_report_are_left_out(report: object) -> None:
    services: Any = SimpleNamespace(reports=SimpleNamespace(read=lambda run, name: json.dumps(report).encode()))
    assert not _reported(services, "one").get("limits")
