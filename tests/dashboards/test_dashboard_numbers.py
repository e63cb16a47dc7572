"""The numbers that stand for a run's outcome and for its worst finding."""

from pathlib import Path

import pytest
from dashboards.builder.colors import FINDINGS
from dashboards.builder.promql import OUTCOMES, finding_number, outcome_number
from tests.dashboards.evaluation import assert_value

RUN = 'run_id="a"'


@pytest.mark.parametrize(
    ("active", "name"),
    [((), "none"), (("step",), "step"), (("spikes", "cliff"), "cliff"), (("step", "stall"), "stall")],
)
def test_the_worst_finding_that_lasts_is_shown(tmp_path: Path, active: tuple[str, ...], name: str) -> None:
    series = {f'cliffwatch_finding_active{{run_id="a", kind="{kind}"}}': "0x9" for kind in ("cliff", "step", "spikes")}
    series |= {f'cliffwatch_undone_seconds{{run_id="a", kind="{kind}"}}': "0x9" for kind in ("stall", "shortfall")}
    for kind in active:
        (lasting,) = (each for each in series if f'kind="{kind}"' in each)
        series[lasting] = "1x9"
    series['cliffwatch_finding_active{run_id="b", kind="cliff"}'] = "1x9"
    assert_value(tmp_path / "test.yaml", series, finding_number(RUN), "5s", FINDINGS[name][0])


@pytest.mark.parametrize(
    ("state", "verdict", "name"),
    [("finished", "degraded", "degraded"), ("finished", "pass", "pass"), ("running", "", "running")],
)
def test_the_verdict_of_a_run_is_shown_or_its_state(tmp_path: Path, state: str, verdict: str, name: str) -> None:
    (number,) = (number for number, (shown, _) in OUTCOMES.items() if shown == name)
    series = {f'cliffwatch_service_run_info{{run_id="a", state="{state}", verdict="{verdict}"}}': "1x9"}
    assert_value(tmp_path / "test.yaml", series, f"max({outcome_number(RUN)})", "5s", number)
