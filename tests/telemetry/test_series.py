"""The table of series: documented as it is, and asking for what the exporters have."""

import re

import numpy as np
import pytest
from testkit.checkout import ROOT

from cliffwatch.model.drives import PrometheusDrives
from cliffwatch.telemetry.catalogue import LAYER_SERIES, SERIES, SeriesScope, SeriesSubject
from cliffwatch.telemetry.prometheus import PrometheusAnswer


def test_the_documentation_lists_the_series() -> None:
    rows = re.findall(
        r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|$", (ROOT / "docs/telemetry.md").read_text(), re.MULTILINE
    )
    documented = [row for row in rows if not row[0].startswith("CLIFFWATCH_")]
    assert documented == [(series.name, series.unit, series.purpose) for series in SERIES]


def test_names_are_unique_and_the_report_asks_for_names_that_exist() -> None:
    names = [series.name for series in SERIES]
    assert len(names) == len(set(names))
    assert set(LAYER_SERIES) <= set(names)


def test_the_workers_series_are_those_that_a_worker_shows() -> None:
    shown = (ROOT / "tests/worker/exposition.txt").read_text()
    for series in SERIES:
        if series.subject is SeriesSubject.RUN:
            assert re.search(rf"^cliffwatch_{series.name}\b", shown, re.MULTILINE), series.name


def test_the_probes_series_are_those_of_its_configuration() -> None:
    configured = (ROOT / "exporters/ebpf/block.yaml").read_text()
    for series in SERIES:
        if series.name.startswith("block_"):
            assert f"name: cliffwatch_{series.name.removesuffix('_bucket')}\n" in configured


@pytest.mark.parametrize("name", ["sda", "nvme0n1", "cciss!c0d0", 'odd"name\\', "a|b.c"])
def test_names_match_themselves_alone(name: str) -> None:
    scope = SeriesScope("run-1", [name], [])
    (query,) = [scope.query(series, 999) for series in scope.series() if series.name == "node_disk_written_bytes_total"]
    found = re.fullmatch(r'last_over_time\(\w+\{job="node",device=~"(.*)"\}\[999ms\]\)', query)
    assert found is not None
    pattern = re.sub(r"\\(.)", r"\1", found[1])
    assert re.fullmatch(pattern, name)
    assert not re.fullmatch(pattern, f"{name}1")


def test_series_of_drives_of_other_hosts_are_those_of_the_run_under_their_names() -> None:
    drives = PrometheusDrives(selector='instance=~"a.*",device=~"sd[a$]"')
    scope = SeriesScope("run-1", ["a/sda"], [], drives)
    (series,) = [each for each in scope.series() if each.name == "block_errors_total"]
    wanted = 'last_over_time(ebpf_exporter_cliffwatch_block_errors_total{instance=~"a.*",device=~"sd[a$]"}[999ms])'
    assert scope.query(series, 999) == wanted
    none = np.empty(0)
    answers = [
        PrometheusAnswer({"instance": f"{host}:9435", "device": device}, none.astype(np.int64), none)
        for host, device in (("a", "sda"), ("a", "sdb"), ("ab", "sda"))
    ]
    assert [each.labels for each in scope.own(series, answers)] == [{"instance": "a:9435", "device": "a/sda"}]
    (of_run,) = [each for each in scope.series() if each.name == "operations_total"]
    assert scope.own(of_run, answers) == answers
    assert 'run_id="run-1"' in scope.query(of_run, 999)


def test_a_subject_that_the_run_does_not_have_is_not_asked_for() -> None:
    asked = {series.subject for series in SeriesScope("run-1", [], []).series()}
    assert asked == {SeriesSubject.RUN, SeriesSubject.MACHINE}
