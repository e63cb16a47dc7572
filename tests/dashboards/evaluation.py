"""Prometheus' own evaluation of an expression over made series, by promtool."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path


def assert_value(path: Path, series: Mapping[str, str], expression: str, at: str, expected: float | None) -> None:
    """Fail unless the expression has that one value, without labels, at that time, or none. `series`: values by series
    in promtool's notation, one a second. `path`: where the test is written."""
    tested = {
        "interval": "1s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": expression,
                "eval_time": at,
                "exp_samples": [] if expected is None else [{"labels": "{}", "value": expected}],
            }
        ],
    }
    path.write_text(json.dumps({"evaluation_interval": "1s", "tests": [tested]}), encoding="utf-8")
    done = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
