"""sar's records of devices as sadf prints them: each line, or record of its JSON, states its interval."""

import json
from pathlib import Path

import pytest
from tests.labs.outputs.printed import text_of
from tests.labs.outputs.reading import first, read, refusal, verdict

from cliffwatch.labs.outputs.names import OutputFormat

SAR = OutputFormat.SAR
HEAD = "# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util"


def line(at: int, requests: float = 100.0, milliseconds: float = 1.0, queue: float = 0.1, device: str = "sda") -> str:
    time = f"2026-09-21 {14 + at // 360:02d}:{at // 6 % 60:02d}:{10 * (at % 6):02d} UTC"
    return f"host;10;{time};{device};{requests:.2f};0.00;9;0;4;{queue:.2f};{milliseconds * (1 + at % 5 / 100):.3f};9.00"


def steady(begin: int = 1, end: int = 121) -> list[str]:
    return [line(at) for at in range(begin, end)]


def document(lines: list[str]) -> list[str]:
    """The JSON of records that are lines of CSV."""
    statistics: dict[str, dict[str, object]] = {}
    for each in lines:
        fields = dict(zip(HEAD.split(";"), each.split(";"), strict=True))
        date, time, _ = fields["timestamp"].split()
        stated = {"date": date, "time": time, "utc": 1, "interval": int(fields["interval"])}
        record = statistics.setdefault(each[:31], {"timestamp": stated, "disk": []})
        disks = record["disk"]
        assert isinstance(disks, list)
        disks.append({"disk-device": fields["DEV"], **{key: float(fields[key]) for key in ("tps", "aqu-sz", "await")}})
    host = {"nodename": "host", "file-date": "2026-09-21", "statistics": list(statistics.values()), "restarts": []}
    return json.dumps({"sysstat": {"hosts": [host]}}, indent=1).splitlines()


def test_a_steady_device_passes_and_a_slower_one_does_not(tmp_path: Path) -> None:
    assert verdict(tmp_path / "s.csv", SAR, [HEAD, *steady()])[0] == "pass"
    slower = [line(at, milliseconds=4) for at in range(121, 241)]
    assert verdict(tmp_path / "s.csv", SAR, [HEAD, *steady(), *slower])[0] == "degraded"


def test_the_recording_is_read(tmp_path: Path) -> None:
    output = read(SAR, *text_of("sar.csv.gz"))
    assert len(output.table.samples) == 40
    assert {series.name for series in output.table.series} == {"vda.mean", "operations_per_second"}
    assert verdict(tmp_path / "s.csv", SAR, text_of("sar.csv.gz"))[0] == "pass"


def test_json_of_the_same_records_is_the_same_table(tmp_path: Path) -> None:
    one, other = (read(SAR, *text_of(name)) for name in ("sar-loop.csv.gz", "sar-loop.json.gz"))
    assert one == other
    assert len(one.table.samples) == 40
    assert {series.name for series in one.table.series} == {"loop0.mean", "vda.mean", "operations_per_second"}
    assert dict(one.table.samples[7].values) == {
        "loop0.mean": 0.00074,
        "vda.mean": 0.0104,
        "operations_per_second": 267.0,
    }
    assert verdict(tmp_path / "s.json", SAR, document(steady()))[0] == "pass"
    slower = [line(at, milliseconds=4) for at in range(121, 241)]
    assert verdict(tmp_path / "s.json", SAR, document([*steady(), *slower]))[0] == "degraded"


@pytest.mark.parametrize(("queue", "name"), [(0.0, "invalid"), (8.0, "degraded")])
def test_json_of_a_device_without_requests_says_whether_it_is_held(tmp_path: Path, queue: float, name: str) -> None:
    none = [line(at, 0.0, 0.0, queue) for at in range(61, 75)]
    lines = document([*steady(1, 61), *none, *steady(75, 135)])
    assert verdict(tmp_path / "s.json", SAR, lines)[0] == name
    gap = document([*steady(1, 61), *steady(75, 135)])
    assert verdict(tmp_path / "s.json", SAR, gap)[0] == "invalid"


def test_devices_of_one_time_are_one_row() -> None:
    lines = [each for at in range(1, 31) for each in (line(at), line(at, 50, 2, device="sdb"))]
    values = first(read(SAR, HEAD, *lines)).values
    assert dict(values) == pytest.approx({"sda.mean": 0.00101, "sdb.mean": 0.00202, "operations_per_second": 150})


def test_records_that_are_absent_are_a_gap(tmp_path: Path) -> None:
    lines = [HEAD, *steady(1, 61), *steady(64, 121)]
    samples = read(SAR, *lines).table.samples
    assert [(each.start, each.end) for each in samples[59:61]] == [(590, 600), (630, 640)]
    assert verdict(tmp_path / "s.csv", SAR, lines)[0] == "invalid"


def test_lengths_that_were_rounded_up_do_not_overlap() -> None:
    samples = read(SAR, HEAD, *(each.replace("host;10;", "host;11;") for each in steady())).table.samples
    assert [(each.start, each.end) for each in samples[:3]] == [(0, 11), (11, 21), (21, 31)]


@pytest.mark.parametrize(("queue", "name"), [(0.0, "invalid"), (8.0, "degraded")])
def test_a_device_without_requests_was_asked_for_none_or_is_held(tmp_path: Path, queue: float, name: str) -> None:
    none = [line(at, 0.0, 0.0, queue) for at in range(61, 75)]
    assert verdict(tmp_path / "s.csv", SAR, [HEAD, *steady(1, 61), *none, *steady(75, 135)])[0] == name


def test_frozen_latencies_beside_a_rate_of_zero_are_refused(tmp_path: Path) -> None:
    frozen = [line(at, 0.0, 1.0) for at in range(1, 121)]
    assert verdict(tmp_path / "s.csv", SAR, [HEAD, *frozen])[0] == "refused"


REFUSED = {
    "JSON cut off": (document(steady())[:-4], "is no JSON of sadf (JSONDecodeError"),
    "JSON of processors": (
        [each.replace('"disk"', '"cpu-load"') for each in document(steady())],
        "has records without devices; `sadf -j FILE -- -d` prints",
    ),
    "JSON with a word for a number": (
        [each.replace("100.0", '"ten"') for each in document(steady())],
        "is no JSON of sadf (ValueError",
    ),
    "JSON whose times go back": (
        document([*steady(10), *steady(1, 10)]),
        "has records whose times go back: the clock was set back; print those",
    ),
    "no devices": (["# hostname;interval;timestamp;CPU;%user"], "line 1: is of records without DEV, tps, await; `sadf"),
    "cut": (
        [HEAD, *steady(), "host;10;2026-09-21 14"],
        "line 122: 'host;10;2026-09-21 14' does not have the fields of",
    ),
    "no number": ([HEAD, line(1).replace("100.00", "ten")], "line 2: "),
    "two": ([HEAD, *steady(), *steady()], "line 122: is 1190 s before line 121 by its time: the clock was set back"),
    "nothing": (
        ["hello"],
        "has no window of sar; `sar -d -o FILE 1` records them, and `sadf -d FILE -- -d` or `sadf -j` prints them",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_lines_are_refused_with_a_remedy(case: str) -> None:
    lines, message = REFUSED[case]
    assert message in refusal(SAR, *lines)


@pytest.mark.parametrize("length", ["0", "-1", "nan"])
def test_an_interval_without_a_length_is_refused(length: str) -> None:
    lines = [HEAD, steady()[0].replace("host;10;", f"host;{length};"), *steady(2)]
    assert "its times are damaged" in refusal(SAR, *lines)
