"""Numbers in the texts of alerts are written as everywhere else: Prometheus' templates beside the program's own."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.alerts.watchers import program

from cliffwatch.base.resources import ALERTS_DIRECTORY
from cliffwatch.base.units import format_latency, format_length, format_ratio, format_share

RULES = sorted((ALERTS_DIRECTORY / "rules").glob("*.yaml"))
_DEFINED = re.compile(r"^ *\{\{- define \"(\w+)\" \}\}.*\{\{ end -\}\}$", re.MULTILINE)
LATENCIES = [
    3.2e-5,
    9.9949e-4,
    9.996e-4,
    0.0047812,
    0.09996,
    0.9486,
    0.99949,
    0.9996,
    3.326,
    12.34,
    99.94,
    260.4,
    3599.6,
]
RATIOS = [1.0, 1.304, 1.9949, 1.9951, 2.46, 4.125, 9.949, 9.951, 12.0, 113.2, 999.6, 2305.1, 48_123.4]
SHARES = [0.0012, 0.0125, 0.1, 0.97, 1.0]
DURATIONS = [1.0, 6.04, 50.0, 90.0, 1800.0, 3600.0, 3605.0, 5400.0, 18_061.0]
CASES: dict[str, tuple[list[float], Callable[[float], str]]] = {
    "latency": (LATENCIES, format_latency),
    "ratio": (RATIOS, format_ratio),
    "share": (SHARES, format_share),
    "duration": (DURATIONS, format_length),
}


def definitions() -> dict[str, set[str]]:
    """Every template that the rules define, by name; one of each name, unless two rules differ."""
    found: dict[str, set[str]] = {}
    for path in RULES:
        for match in _DEFINED.finditer(path.read_text(encoding="utf-8")):
            found.setdefault(match[1], set()).add(match[0].strip())
    return found


def test_rules_that_need_the_same_numbers_define_them_alike() -> None:
    assert {name: len(each) for name, each in definitions().items()} == dict.fromkeys(["digits", *CASES], 1)


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_no_text_leaves_its_numbers_to_prometheus(path: Path) -> None:
    texts = _DEFINED.sub("", path.read_text(encoding="utf-8"))
    assert not re.findall(r"\| (?:humanizeDuration|humanizePercentage|printf \"%\.\d)[^}]*", texts)


def test_prometheus_writes_numbers_as_the_program_does(tmp_path: Path) -> None:
    known = {name: next(iter(each)) for name, each in definitions().items()}
    rules, checks = [], []
    for name, (values, written) in CASES.items():
        for index, value in enumerate(values):
            text = known["digits"] + (known[name]) + f'{{{{ template "{name}" $value }}}}'
            alert = f"{name.title()}{index}"
            rules.append({"alert": alert, "expr": f"vector({value!r})", "annotations": {"said": text}})
            expected = [{"exp_annotations": {"said": written(value)}}]
            checks.append({"alertname": alert, "eval_time": "0s", "exp_alerts": expected})
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "numbers", "rules": rules}]}))
    scene = {"interval": "1s", "input_series": [], "alert_rule_test": checks}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [scene]}))
    done = subprocess.run(
        [program("promtool"), "test", "rules", str(tmp_path / "test.yaml")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
