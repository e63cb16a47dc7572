"""Drives that a Prometheus knows: found, refused, counted and asked for, with a real Prometheus."""

import html
import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.api.harness import ORDER, WORKLOAD, Api, serving
from tests.telemetry.filled_runs import counter
from tests.telemetry.prometheus_server import PrometheusServer, fill

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.journal import JournalReader, files
from cliffwatch.model.settings import read_settings
from cliffwatch.store.models import ScheduleRow
from cliffwatch.telemetry.address import PrometheusAddress
from cliffwatch.telemetry.drives import DRIVES_LIMIT, FoundDrives, RemoteDrive, drive_name, find_drives, read_counters
from cliffwatch.telemetry.prometheus import Prometheus, PrometheusAnswer, QueryFailed

ALL = 'job="node"'
NOW = float(round(time.time()))
#: One scrape for a clock that is late, two that are looked at, and more for as long as the tests may take.
SCRAPES = [NOW - 90, NOW - 15, NOW - 10, *(NOW + later for later in range(240, 2400, 240))]
DRIVES = (("broker-1:9100", "nvme0n1"), ("broker-1:9100", "nvme1n1"), ("broker-2:9100", "nvme0n1"), ("[::1]:9", "sda"))
NAMES = ["[::1]/sda", "broker-1/nvme0n1", "broker-1/nvme1n1", "broker-2/nvme0n1"]


def series(metric: str, instance: str, device: str, value: float, **labels: str) -> Iterator[str]:
    more = "".join(f',{name}="{text}"' for name, text in labels.items())
    labelled = f'{metric}{{job="node",instance="{instance}",device="{device}"{more}}}'
    yield from counter(labelled, SCRAPES, [value + 10 * number for number in range(-1, len(SCRAPES) - 1)])


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    server = PrometheusServer(tmp_path_factory.mktemp("known"))
    lines: list[str] = []
    for metric in ("reads_completed", "read_bytes", "read_time_seconds", "writes_completed", "written_bytes"):
        for instance, device in DRIVES:
            found = list(series(f"node_disk_{metric}_total", instance, device, 1000.0))
            lines += found if (instance, device) == DRIVES[0] else found[1:]
    for metric in ("write_time_seconds", "io_time_weighted_seconds"):
        lines += series(f"node_disk_{metric}_total", *DRIVES[0], 4294967.295)
    lines += series("node_disk_discarded_sectors_total", *DRIVES[0], 8.0)
    more = list(series("node_disk_info", *DRIVES[0], 1, model="Fast ", serial="S1", wwn="nvme.1", revision="F2"))
    lines += [line.replace(" counter", " gauge") for line in more]
    fill(server.data, lines)
    with server:
        yield server


def test_the_drives_that_a_selector_finds_have_the_names_of_their_hosts(known: PrometheusServer) -> None:
    found = find_drives(known.address, ALL, SystemClock()).drives
    assert [drive.name for drive in found] == NAMES
    assert [drive.number for drive in found] == ["0:1", "0:2", "0:3", "0:4"]
    assert found[1] == RemoteDrive(
        "broker-1/nvme0n1", "0:2", "broker-1:9100", model="Fast", serial="S1", wwn="nvme.1", firmware="F2"
    )
    (drive,) = find_drives(known.address, 'instance=~"broker-2.*",device=~"nvme.*"', SystemClock()).drives
    assert (drive.name, drive.number) == ("broker-2/nvme0n1", "0:1")


@pytest.mark.parametrize(
    ("instance", "host"),
    [("local", "local"), ("h:9100", "h"), ("h:web", "h:web"), ("[::1]:9", "[::1]"), ("fe80::1", "fe80::1"), ("", "")],
)
def test_a_host_is_the_instance_without_its_port(instance: str, host: str) -> None:
    assert drive_name({"instance": instance, "device": "cciss!c0d0"}) == f"{host}/cciss!c0d0"


def test_counters_are_whole_numbers_of_what_the_kernel_counted(known: PrometheusServer) -> None:
    prometheus = Prometheus(known.address, time.monotonic() + 30)
    found = read_counters(prometheus, ALL, NOW, 60)
    prometheus.close()
    # Of the others not all counters are there.
    assert {name: len(scrapes) for name, scrapes in found.items() if scrapes} == {"broker-1/nvme0n1": 2}
    earlier, later = (found["broker-1/nvme0n1"][moment] for moment in (NOW - 15, NOW - 10))
    assert earlier.write_milliseconds == 2**32 - 1
    assert earlier.discard_bytes == 4096
    assert (later - earlier).write_milliseconds == 10_000
    assert (later - earlier).read_operations == 10


class OffClock(SystemClock):
    """The clock of a machine that is a minute late."""

    def wall(self) -> float:
        return super().wall() - 60


def test_a_clock_that_is_off_is_named(known: PrometheusServer, tmp_path: Path) -> None:
    right = find_drives(known.address, ALL, SystemClock())
    assert right.clock_trouble(1.0) is None
    assert FoundDrives([], -0.9).clock_trouble(10.0) is None
    assert "is 1.1 s behind this machine's" in str(FoundDrives([], -1.1).clock_trouble(10.0))
    with serving(read_settings(state_directory=tmp_path / "state", prometheus_url=known.url), OffClock()) as api:
        # The scrapes of a minute ago are younger than five minutes.
        asked = ORDER | {"drives": f"prometheus:{ALL}"}
        notes = api.post("/runs/plan", asked).json()["notes"]
    assert [note for note in notes if "is 60.0 s ahead of this machine's" in note]


def test_scrapes_that_are_further_apart_than_windows_are_named(known: PrometheusServer, tmp_path: Path) -> None:
    trouble = FoundDrives([], 0.0, 15.0).scrape_trouble(10.0)
    assert trouble is not None
    assert "are scraped every 15s, and a window lasts 10s" in trouble
    assert "make the window 15s or scrape more often" in trouble
    assert FoundDrives([], 0.0, 15.0).scrape_trouble(15.0) is None
    assert FoundDrives([], 0.0).scrape_trouble(0.1) is None
    with serving(read_settings(state_directory=tmp_path / "state", prometheus_url=known.url)) as api:
        # Two spans of 75 s and 5 s.
        notes = api.post("/runs/plan", ORDER | {"drives": f"prometheus:{ALL}"}).json()["notes"]
    assert [note for note in notes if "are scraped every 40s, and a window lasts 1s" in note]


@pytest.mark.parametrize(("name", "value"), [("up", "1"), ("node_disk_read_bytes_total", "NaN")])
def test_counters_that_make_no_sense_are_an_answer_that_failed(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    odd = PrometheusAnswer({"instance": "a:1", "device": "sda"}, np.array([1000]), np.array([float(value)]), name)
    monkeypatch.setattr(Prometheus, "query_samples", lambda *_: [odd])
    prometheus = Prometheus(PrometheusAddress("http://127.0.0.1:1"), time.monotonic())
    with pytest.raises(QueryFailed, match="make no sense"):
        read_counters(prometheus, ALL, NOW, 60)
    prometheus.close()


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ('device="nvme9n9"', "it knows [::1]/sda, broker-1/nvme0n1, broker-1/nvme1n1, broker-2/nvme0n1"),
        ('device=~"("', "parse"),
    ],
)
def test_a_selector_that_finds_none_is_refused_with_what_there_is(
    known: PrometheusServer, selector: str, said: str
) -> None:
    with pytest.raises(Problem) as refused:
        find_drives(known.address, selector, SystemClock())
    words = " ".join([str(refused.value), *(fault.message for fault in refused.value.faults)])
    assert said in words


def test_two_drives_of_one_name_too_many_and_no_prometheus_are_refused(tmp_path: Path) -> None:
    server = PrometheusServer(tmp_path / "twice")
    metric = "node_disk_writes_completed_total"
    lines = list(series(metric, "broker-1:9100", "sda", 1))
    lines += list(series(metric, "broker-1:9200", "sda", 1))[1:]
    for number in range(DRIVES_LIMIT + 1):
        lines += list(series(metric, "many:1", f"sd{number}", 1))[1:]
    fill(server.data, lines)
    with server:
        for selector, said in (
            (
                'instance=~"broker.*"',
                'broker-1/sda is there twice (instance="broker-1:9100", instance="broker-1:9200")',
            ),
            ('instance="many:1"', f"{DRIVES_LIMIT + 1} drives are found; choose at most {DRIVES_LIMIT}"),
        ):
            with pytest.raises(Problem) as refused:
                find_drives(server.address, selector, SystemClock())
            (fault,) = refused.value.faults
            assert (fault.field, said in fault.message) == ("drives", True), fault
    with pytest.raises(Problem) as refused:
        find_drives(server.address, ALL, SystemClock())
    assert refused.value.code is Code.NOT_READY
    with pytest.raises(Problem) as refused:
        find_drives(None, ALL, SystemClock())
    assert refused.value.code is Code.BAD_REQUEST


def test_a_dry_run_lists_the_drives_and_a_request_keeps_them(known: PrometheusServer, tmp_path: Path) -> None:
    asked = ORDER | {"drives": 'prometheus:instance=~"broker-1.*"'}
    with serving(read_settings(state_directory=tmp_path / "state", prometheus_url=known.url)) as api:
        assert api.post("/runs/plan", asked).json()["drives"] == ["broker-1/nvme0n1", "broker-1/nvme1n1"]
        assert api.post("/runs/plan", ORDER).json()["drives"] == []
        assert api.put("/runs/far", asked).status_code == 201
        assert api.put("/runs/far", asked).status_code == 200
        assert api.put("/runs/far", ORDER).status_code == 409
        order = JournalReader(api.settings.runs_directory / "far").document(files.ORDER)
        assert order["drives"] == {"source": "prometheus", "selector": 'instance=~"broker-1.*"', "server": None}
        again = api.get("/runs/far/request").json()
        assert again["drives"] == order["drives"]
        other = api.post("/runs", again)
        assert other.status_code == 201
        differing = {"drives": f"prometheus:{ALL}"}
        third = api.post("/runs", ORDER | differing).json()["id"]
        assert api.get(f"/runs/far/differences?other={other.json()['id']}").json()["targets"] == []
        (targets,) = api.get(f"/runs/far/differences?other={third}").json()["targets"]
        assert (targets["place"], targets["second"]) == ("drives", differing["drives"])
        for wrong, said in (
            (asked | {"drives": 'prometheus:device="none"'}, "it knows [::1]/sda"),
            (asked | {"drives": "prometheus:device=none"}, "write label matchers"),
            (asked | {"drives": {"selector": 'device="a"', "server": "staging"}}, "is no Prometheus that is known"),
            (asked | {"drives": "elsewhere"}, "write prometheus:SELECTOR"),
            (asked | {"workload": WORKLOAD | {"load": {"time": "virtual"}}}, "virtual time watches no drives"),
        ):
            answer = api.post("/runs", wrong)
            (fault,) = answer.json()["errors"]
            assert answer.status_code in {400, 422}
            assert (fault["field"].startswith("drives"), said in fault["message"]) == (True, True), fault
        assert sorted(run["id"] for run in api.get("/runs").json()["items"])[0] == "far"


def test_the_runs_of_a_schedule_watch_drives_of_other_hosts(known: PrometheusServer, tmp_path: Path) -> None:
    drives = {"source": "prometheus", "selector": 'instance=~"broker-1.*"', "server": None}
    other = drives | {"selector": 'instance=~"broker-2.*"'}
    asked = ORDER | {"name": "nightly", "trigger": {"kind": "interval", "every": "365d"}}
    with serving(read_settings(state_directory=tmp_path / "state", prometheus_url=known.url)) as api:
        services = api.services
        for name, change, watched in (("first", {}, drives), ("second", {"drives": other}, other)):
            made = api.post("/schedules", asked | {"name": name, "drives": f"prometheus:{drives['selector']}"}).json()
            path = f"/schedules/{made['id']}"
            assert made["drives"] == drives
            assert api.call("PATCH", path, {"labels": {"release": "26.2"}} | change).json()["drives"] == watched
            with services.database.session() as session:
                session.get_one(ScheduleRow, made["id"]).next_fire_at = services.clock.wall() - 1
            services.scheduler.fire(made["id"])
            run_id = api.get(path).json()["last_firing"]["run_id"]
            assert api.get(f"/runs/{run_id}/request").json()["drives"] == watched
        assert api.post("/schedules", asked | {"name": "plain"}).json()["drives"] is None


def test_a_schedule_whose_drives_are_away_fails_to_queue_and_says_why(tmp_path: Path) -> None:
    asked = ORDER | {"name": "nightly", "trigger": {"kind": "interval", "every": "365d"}}
    server = PrometheusServer(tmp_path / "away")
    with serving(read_settings(state_directory=tmp_path / "state", prometheus_url=server.url)) as api:
        for wrong, said in (
            (asked | {"drives": {"selector": 'device="a"', "server": "staging"}}, "is no Prometheus that is known"),
            (
                asked | {"drives": 'prometheus:device="a"', "workload": WORKLOAD | {"load": {"time": "virtual"}}},
                "virtual time watches no drives",
            ),
        ):
            refused = api.post("/schedules", wrong)
            assert (refused.status_code, said in refused.text) == (422, True)
        made = api.post("/schedules", asked | {"drives": 'prometheus:device="a"'}).json()
        with api.services.database.session() as session:
            session.get_one(ScheduleRow, made["id"]).next_fire_at = api.services.clock.wall() - 1
        api.services.scheduler.fire(made["id"])
        last = api.get(f"/schedules/{made['id']}").json()["last_firing"]
        assert (last["outcome"], last["run_id"]) == ("failed", None)
        assert "Prometheus" in last["detail"]


def fill_in(api: Api, path: str, **fields: str) -> str:
    """Page that answers a form which a user with the right to operate sends."""
    visitor = {"Cookie": f"cliffwatch_token={api.tokens['operate']}"}
    word = re.search(r'name="(\w+)" value="([^"]+)"', api.client.get(path, headers=visitor).text)
    assert word is not None
    origin = {"Origin": str(api.client.base_url).rstrip("/")}
    answer = api.client.post(path, data=fields | {word[1]: word[2]}, headers=visitor | origin)
    return html.unescape(answer.text)


def test_forms_take_drives_of_other_hosts(known: PrometheusServer, tmp_path: Path) -> None:
    selector = 'instance=~"broker-1.*"'
    with serving(read_settings(state_directory=tmp_path / "state", prometheus_url=known.url)) as api:
        api.call("PUT", "/workloads/steady", WORKLOAD)
        form = {"workload": "steady", "target_kind": "synthetic", "target": "nowhere", "drives": selector}
        shown = fill_in(api, "/start", **form, action="check")
        assert "<dt>watches</dt><dd>broker-1/nvme0n1, broker-1/nvme1n1</dd>" in shown
        assert "drives of other hosts (--drives): " in fill_in(
            api, "/start", **form | {"drives": "sda"}, action="check"
        )
        unknown = fill_in(api, "/start", **form, prometheus="staging", action="check")
        assert "Prometheus of the drives (--prometheus): 'staging' is no Prometheus that is known" in unknown
        fill_in(api, "/start", **form | {"drives": f"prometheus:{selector}"}, action="start")
        (run,) = api.get("/runs").json()["items"]
        assert api.get(f"/runs/{run['id']}/request").json()["drives"]["selector"] == selector
        visitor = {"Cookie": f"cliffwatch_token={api.tokens['operate']}"}
        again = html.unescape(api.client.get(f"/start?again={run['id']}", headers=visitor).text)
        assert f'name="drives" value="{selector}"' in again
        fill_in(api, "/schedules", **form, name="weekly", expression="0 18 * * fri", time_zone="UTC")
        (schedule,) = api.get("/schedules").json()["items"]
        assert schedule["drives"]["selector"] == selector
        listed = html.unescape(api.client.get("/schedules", headers=visitor).text)
        assert f"steady on synthetic:nowhere, watching {selector}" in listed
