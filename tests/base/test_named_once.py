"""Phases and kinds of findings have one enum each; what cannot use it is held to it here."""

import re

from dashboards.builder.colors import PHASES

from cliffwatch.analysis.verdict import DEGRADING_KINDS
from cliffwatch.base.resources import ALERTS_DIRECTORY
from cliffwatch.model.limits import EXCLUDABLE
from cliffwatch.model.phase import Phase

RULES = sorted((ALERTS_DIRECTORY / "rules").glob("*.yaml"))


def test_dashboards_draw_every_phase_in_its_order() -> None:
    assert [(name, number) for name, (number, _) in PHASES.items()] == [
        (phase.value, number) for number, phase in enumerate(Phase, 1)
    ]


def test_alert_rules_ask_for_phases_that_there_are() -> None:
    texts = [path.read_text(encoding="utf-8") for path in RULES]
    asked = [names for text in texts for names in re.findall(r'\bphase[=!]~?"([^"]*)"', text)]
    assert asked
    assert {name for names in asked for name in names.split("|")} <= set(Phase)


def test_a_limit_excludes_what_degrades() -> None:
    assert (*DEGRADING_KINDS, "degradation") == EXCLUDABLE
