"""Which rows a heat map has: Prometheus' own evaluation of its query over histograms of known counts."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from dashboards.builder.promql import shares

#: Ten minutes of scrapes, once a minute, and what Grafana would put in for its variables.
SCRAPES = 10
QUERY = shares("latency_seconds", 'run_id="r"').replace("$__rate_interval", "4m").replace("$__range", "9m")


def rows(path: Path, counted: Mapping[str, int], *, earlier: Mapping[str, int] | None = None) -> dict[str, float]:
    """The share of each row, as Grafana computes it from what Prometheus answers: a bucket less the bucket below it.

    `counted`: operations a minute by the bound `le` of their bucket; `earlier`: in minutes before those are shown.
    """
    series, below = [], (0, 0)
    for bound, count in counted.items():
        below = (below[0] + (earlier or {}).get(bound, 0), below[1] + count)
        series.append((f'latency_seconds_bucket{{run_id="r",le="{bound}"}}', *below))
    series.append(('latency_seconds_count{run_id="r"}', *below))
    document = {
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": f"0+{before}x5 {before * 5}+{now}x{SCRAPES}"}
                    for name, before, now in series
                ],
                "promql_expr_test": [{"expr": QUERY, "eval_time": f"{6 + SCRAPES}m", "exp_samples": []}],
            }
        ],
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    done = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True, check=False)
    return _rows_of(done.stdout + done.stderr)


def _rows_of(said: str) -> dict[str, float]:
    """What promtool found instead of nothing: `got: {le="0.5"} 1E-01, {le="1"} 2E-01`."""
    got = next((line for line in said.splitlines() if "got:" in line), None)
    if got is None:
        assert "SUCCESS" in said, said
        return {}
    buckets: dict[float, tuple[str, float]] = {}
    for one in got.partition("got:")[2].split(", "):
        labels, _, value = one.strip().rstrip(",").rpartition(" ")
        bound = labels.removeprefix('{le="').removesuffix('"}')
        buckets[float(bound)] = (bound, float(value))
    found, below = {}, 0.0
    for _, (name, cumulative) in sorted(buckets.items()):
        found[name] = round(cumulative - below, 6)
        below = cumulative
    return found


def test_rows_reach_from_the_least_to_the_greatest_latency(tmp_path: Path) -> None:
    counted = {"6.103515625e-05": 0, "0.25": 10, "0.5": 0, "1.0": 30, "2.0": 0, "4.0": 0, "+Inf": 0}
    assert rows(tmp_path / "rows.yaml", counted) == {"0.25": 0.25, "0.5": 0.0, "1.0": 0.75}


def test_bounds_are_compared_as_numbers(tmp_path: Path) -> None:
    """Exporters write a bound in several ways, and a bound that sorts last as text may be the least."""
    counted = {"9.5367431640625e-07": 1, "1.9073486328125e-06": 1, "1": 1, "16": 2, "32": 0, "+Inf": 0}
    shown = {"9.5367431640625e-07": 0.2, "1.9073486328125e-06": 0.2, "1": 0.2, "16": 0.4}
    assert rows(tmp_path / "rows.yaml", counted) == shown


def test_operations_beyond_the_last_bound_have_their_row(tmp_path: Path) -> None:
    counted = {"32.0": 0, "64.0": 3, "+Inf": 1}
    assert rows(tmp_path / "rows.yaml", counted) == {"64.0": 0.75, "+Inf": 0.25}
    assert rows(tmp_path / "rows.yaml", {"32.0": 0, "64.0": 0, "+Inf": 1}) == {"+Inf": 1.0}


def test_a_bucket_filled_only_before_the_shown_time_has_no_heat_map_row(tmp_path: Path) -> None:
    counted = {"0.25": 10, "0.5": 10, "1.0": 0, "+Inf": 0}
    assert rows(tmp_path / "rows.yaml", counted, earlier={"1.0": 20}) == {"0.25": 0.5, "0.5": 0.5}


def test_a_time_without_operations_has_no_rows(tmp_path: Path) -> None:
    assert rows(tmp_path / "rows.yaml", {"0.25": 0, "+Inf": 0}, earlier={"0.25": 7}) == {}
