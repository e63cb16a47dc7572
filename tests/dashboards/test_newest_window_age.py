"""The age of a run's newest window, on Run and Watcher: in windows while the run is under load, and else nothing.

A run that cools down, or is over, has no newer window to come: an age that grows would be a false red.
"""

from pathlib import Path

import pytest
from tests.dashboards.documents import DIRECTORY, load, panel_queries
from tests.dashboards.evaluation import assert_value

PANELS = (("run", "Newest window's age A"), ("watcher", "Age of each run's newest window A"))


@pytest.mark.parametrize(
    ("phase", "age"), [("warm_up", 3), ("baseline", 3), ("soak", 3), ("prepare", None), ("cool_down", None)]
)
@pytest.mark.parametrize(("dashboard", "panel"), PANELS, ids=["run", "watcher"])
def test_a_run_has_an_age_under_load_and_no_other(
    tmp_path: Path, dashboard: str, panel: str, phase: str, age: float | None
) -> None:
    (query,) = (each for each in panel_queries(load(DIRECTORY / f"{dashboard}.json")) if each.where == panel)
    phases = dict.fromkeys(("prepare", "warm_up", "baseline", "soak", "cool_down"), "0x60") | {phase: "1x60"}
    series = {f'cliffwatch_run_phase{{run_id="a", phase="{name}"}}': values for name, values in phases.items()}
    series |= {
        'cliffwatch_last_window_timestamp_seconds{run_id="a"}': "15x60",
        'cliffwatch_run_window_seconds{run_id="a"}': "10x60",
    }
    assert_value(tmp_path / "test.yaml", series, f"max({query.rendered({'run': 'a'})})", "45s", age)
