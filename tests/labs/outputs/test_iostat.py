"""iostat's reports of devices, as text and as JSON."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.labs.outputs.printed import text_of
from tests.labs.outputs.reading import first, read, refusal, verdict

from cliffwatch.labs.outputs.names import OutputFormat

IOSTAT = OutputFormat.IOSTAT
HEAD = "Device            r/s     rkB/s r_await     w/s     wkB/s w_await  aqu-sz  %util"
TITLE = "Linux 6.1.0 (host)   2026-09-21   _x86_64_   (2 CPU)"


def report(at: int, written: float = 100.0, milliseconds: float = 1.0, queue: float = 0.1, time: str = "") -> list[str]:
    moment = time or f"2026-09-21T14:{at // 60:02d}:{at % 60:02d}+0000"
    awaited = milliseconds * (1 + at % 5 / 100)
    return [
        moment,
        "avg-cpu:  %user   %nice %system %iowait  %steal   %idle",
        "          58.27   23.56   10.05    0.35    0.94    6.84",
        "",
        HEAD,
        f"sda              0.00      0.00    0.00  {written:6.2f}    400.00  {awaited:6.2f}  {queue:6.2f}   9.00",
        "",
    ]


def printed(*reports: list[str]) -> list[str]:
    return [TITLE, "", *report(0, 7, 90), *(line for each in reports for line in each)]


def steady(begin: int = 1, end: int = 121) -> list[list[str]]:
    return [report(at) for at in range(begin, end)]


def test_a_report_has_the_mean_latency_of_each_device_since_the_one_before() -> None:
    output = read(IOSTAT, *printed(*steady()))
    assert dict(first(output).values) == pytest.approx({"sda.write.mean": 0.00101, "operations_per_second": 100})
    assert len(output.table.samples) == 120
    assert output.remark.startswith("The first report is since boot and was left out; rates of sda were added up.")


def test_a_steady_device_passes_and_a_slower_one_does_not(tmp_path: Path) -> None:
    assert verdict(tmp_path / "i.txt", IOSTAT, printed(*steady()))[0] == "pass"
    slower = [report(at, milliseconds=4) for at in range(121, 241)]
    assert verdict(tmp_path / "i.txt", IOSTAT, printed(*steady(), *slower))[0] == "degraded"


@pytest.mark.parametrize("name", ["iostat.txt.gz", "iostat.json.gz"])
def test_a_recording_is_read(tmp_path: Path, name: str) -> None:
    output = read(IOSTAT, *text_of(name))
    assert len(output.table.samples) == 44
    assert "vda.write.mean" in {series.name for series in output.table.series}
    assert verdict(tmp_path / "i", IOSTAT, text_of(name))[0] == "pass"


@pytest.mark.parametrize(
    ("queue", "name", "said"),
    [(0.0, "invalid", "nothing was outstanding"), (8.0, "degraded", "Nothing was completed for 14 s")],
)
def test_a_device_without_requests_was_asked_for_none_or_is_held(
    tmp_path: Path, queue: float, name: str, said: str
) -> None:
    none = [report(at, written=0.0, milliseconds=0.0, queue=queue) for at in range(61, 75)]
    found, words = verdict(tmp_path / "i.txt", IOSTAT, printed(*steady(1, 61), *none, *steady(75, 135)))
    assert found == name
    assert said in words


def test_latencies_beside_a_rate_of_zero_are_not_measured(tmp_path: Path) -> None:
    frozen = [report(at, written=0.0, milliseconds=1.0) for at in range(1, 121)]
    assert verdict(tmp_path / "i.txt", IOSTAT, printed(*frozen))[0] == "refused"


def test_reports_that_are_absent_are_a_gap(tmp_path: Path) -> None:
    lines = printed(*steady(1, 61), *steady(65, 121))
    samples = read(IOSTAT, *lines).table.samples
    assert [(each.start, each.end) for each in samples[59:61]] == [(59, 60), (64, 65)]
    assert verdict(tmp_path / "i.txt", IOSTAT, lines)[0] == "invalid"


def test_times_of_an_english_locale_are_read() -> None:
    times = [f"09/21/2026 {12 if at < 60 else 1:02d}:{at % 60:02d}:00 PM" for at in range(120)]
    lines = [line for at, time in enumerate(times) for line in report(at, time=time)]
    assert read(IOSTAT, *lines).table.window_seconds == 60


def document(change: str = "") -> list[str]:
    disk = {"disk_device": "sda", "r/s": 1.0, "w/s": 2.0, "r_await": 3.0, "w_await": 4.0, "aqu-sz": 0.1}
    statistics: list[dict[str, Any]] = [
        {"timestamp": f"2026-09-21T14:00:{at:02d}+0000", "disk": [disk]} for at in range(30)
    ]
    if change:
        del statistics[3][change]
    return json.dumps({"sysstat": {"hosts": [{"nodename": "host", "statistics": statistics}]}}, indent=1).splitlines()


def test_json_has_the_same_figures() -> None:
    values = first(read(IOSTAT, *document())).values
    assert dict(values) == pytest.approx({"sda.read.mean": 0.003, "sda.write.mean": 0.004, "operations_per_second": 3})


REFUSED = {
    "no time": ([TITLE, "", *report(0)[1:]], "line 6: is of a report without a time; ask for `S_TIME_FORMAT=ISO"),
    "no time in JSON": (document("timestamp"), "has a report without a time; ask for `S_TIME_FORMAT=ISO iostat -x -t"),
    "no disks": (document("disk"), "is no JSON of iostat (KeyError('disk')); interrupt iostat with Ctrl-C"),
    "cut JSON": (document()[:-9], "is no JSON of iostat (JSONDecodeError"),
    "cut": ([*printed(*steady()), *report(121)[:5], "sda   0.00"], "line 855: 'sda   0.00' does not have the 9 fields"),
    "NaN": ([line.replace("w_await", "x_await") for line in printed(*steady())], "has no w/s or w_await of sda; ask"),
    "two runs": (printed(*steady(), *steady()), "by its time: the clock was set back between them"),
    "one report": (printed(), "has no window of iostat; `S_TIME_FORMAT=ISO iostat -x -t 1` prints a report for each"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_reports_are_refused_with_a_remedy(case: str) -> None:
    lines, message = REFUSED[case]
    assert message in refusal(IOSTAT, *lines)
