"""A workload that is wrong is refused with the name of the field and what would be right."""

import pytest
import yaml
from pydantic import ValidationError

from cliffwatch.base.documents import readable_yaml
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.engines.registry import check_target_kind, load_of
from cliffwatch.model.target import DirectoryTarget, parse_target
from cliffwatch.model.workload import DurationOverrides, format_workload, parse_workload

GOOD = """
version: 1
name: synthetic-cliff
engine: synthetic
window: 10s
phases: {warm_up: 30m, baseline: 1h, soak: 34h30m}
load:
  median_latency: 2ms
  cliff_after: 12h
"""


def refusal(text: str) -> Problem:
    with pytest.raises(Problem) as caught:
        load_of(parse_workload(text))
    assert caught.value.code is Code.WORKLOAD_INVALID
    return caught.value


def test_addresses_are_host_and_port() -> None:
    targets = ["broker-1.example.org:9644", "192.0.2.7:9100", "[2001:db8::7]:9100", "localhost:1"]
    workload = parse_workload(f"{GOOD}\nscrape: [{{job: broker, targets: {targets}}}]")
    assert workload.scrape[0].targets == targets
    assert workload.scrape[0].path == "/metrics"


def test_a_workload_is_read_and_written_back_the_same() -> None:
    workload = parse_workload(GOOD)
    assert workload.phases.load_seconds == 36 * 3600
    assert parse_workload(format_workload(workload)) == workload
    assert load_of(workload).cliff_after == 12 * 3600


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("name", ["0{}", "{}0", "a{}b", "a\n{}b", "a {} b"])
def test_a_name_of_several_lines_is_read_back_as_it_was(end: str, name: str) -> None:
    document = {"name": name.format(end), "fio": f"[job]{end}rw=write{end}"}
    assert yaml.safe_load(readable_yaml(document)) == document


@pytest.mark.parametrize(
    ("change", "field", "remedy"),
    [
        (("window: 10s", "windwo: 10s"), "windwo", "unknown key"),
        (("window: 10s", "window: 10"), "window", "has no unit"),
        (("window: 10s", "window: 10 parsecs"), "window", "not a duration"),
        (("window: 10s", "window: 1ms"), "window", "1ms is out of range; write at least 100ms"),
        (("soak: 34h30m", "soak: -1h"), "phases.soak", "not a duration"),
        (("soak: 34h30m", "soak: 91d"), "phases.soak", "91d is out of range; write at most 90d"),
        (("soak: 34h30m", "soak: 0s"), "phases.soak", "0s is out of range; write more than 0s"),
        ((", soak: 34h30m", ""), "phases.soak", "missing"),
        (("window: 10s", "limits: [p98 <= 2ms]"), "limits.0", "write `p99 <= 2ms`"),
        (("window: 10s", "limits: [no cliff, no cliff]"), "limits", "remove one"),
        (("window: 10s", "limits: [p99 <= 2ms over any 5s]"), "document", "make its span longer"),
        (("window: 10s", "limits: [p99 <= 2ms over any 36h]"), "document", "make its span shorter"),
        (("version: 1", "version: 2"), "version", "1"),
        (("name: synthetic-cliff", "name: Synthetic Cliff"), "name", "use up to 63 of a-z"),
        (("engine: synthetic", "engine: warp"), "engine", "engines:"),
        (("median_latency: 2ms", "median_latency: 2 GiB"), "load.median_latency", "not a duration"),
        (("median_latency", "median"), "load.median", "unknown key"),
        (("load:", "scrape: [{job: node, targets: ['a:1']}]\nload:"), "scrape.0.job", "another name"),
        (("load:", "scrape: [{job: cliffwatch-x, targets: ['a:1']}]\nload:"), "scrape.0.job", "another name"),
        (("load:", "scrape: [{job: Broker, targets: ['a:1']}]\nload:"), "scrape.0.job", "pattern"),
        (("load:", "scrape: [{job: broker, targets: []}]\nload:"), "scrape.0.targets", "at least 1"),
        (("load:", "scrape: [{job: broker, targets: ['http://a:1/']}]\nload:"), "scrape.0.targets", "host:port"),
        (("load:", "scrape: [{job: broker, targets: ['a:0']}]\nload:"), "scrape.0.targets", "host:port"),
        (("load:", "scrape: [{job: broker, targets: ['a:65536']}]\nload:"), "scrape.0.targets", "host:port"),
        (("load:", "scrape: [{job: broker, targets: ['a:1'], path: metrics}]\nload:"), "scrape.0.path", "pattern"),
        (("load:", f"scrape: [{{job: broker, targets: {['a:1'] * 51}}}]\nload:"), "scrape", "at most 50"),
    ],
)
def test_each_fault_is_named_with_its_remedy(change: tuple[str, str], field: str, remedy: str) -> None:
    assert change[0] in GOOD
    problem = refusal(GOOD.replace(*change))
    assert [fault.field for fault in problem.faults] == [field]
    assert remedy in problem.faults[0].message


def test_a_job_of_several_lines_is_written_line_by_line() -> None:
    job = "[log]\nrw=write\nsize=16m\n\n[lookup]\nrw=read\nsize=16m\n"
    workload = parse_workload(GOOD).model_copy(update={"engine": "fio", "load": {"job": job}})
    text = format_workload(workload)
    assert "  job: |\n    [log]\n    rw=write\n    size=16m\n\n    [lookup]\n" in text
    assert parse_workload(text) == workload


def test_a_relative_path_is_refused_with_how_to_begin() -> None:
    with pytest.raises(ValidationError) as caught:
        DirectoryTarget(kind="directory", path="mnt/test")
    assert [fault.message for fault in faults_of(caught.value)] == [
        "'mnt/test' is not an absolute path; begin it with /"
    ]


def test_all_faults_are_named_at_once() -> None:
    problem = refusal(GOOD.replace("version: 1", "version: 3").replace("window: 10s", "window: 10"))
    assert {fault.field for fault in problem.faults} == {"version", "window"}


@pytest.mark.parametrize("text", ["", "- a list", "a: [", "\x00"])
def test_text_that_is_no_workload_document_is_refused(text: str) -> None:
    assert refusal(text).detail


def test_phases_shorter_than_a_window_are_refused() -> None:
    problem = refusal("version: 1\nname: x\nengine: synthetic\nphases: {soak: 5s}\n")
    assert "less than one window" in problem.faults[0].message


def test_durations_may_be_replaced_and_still_must_fit() -> None:
    workload = parse_workload(GOOD)
    shorter = workload.with_durations(DurationOverrides.model_validate({"soak": "3m", "warm_up": "0s", "window": "1s"}))
    assert (shorter.phases.soak, shorter.phases.baseline, shorter.window) == (180, 3600, 1)
    with pytest.raises(Problem):
        workload.with_durations(
            DurationOverrides.model_validate({"soak": "1s", "warm_up": "0s", "baseline": "0s", "window": "10s"})
        )


@pytest.mark.parametrize("text", ["directory:/data/soak", "device:S4EVNX0R", "synthetic:null"])
def test_targets_are_read_and_written_back(text: str) -> None:
    assert str(parse_target(text)) == text


@pytest.mark.parametrize("text", ["", "/data", "directory:", "directory:data", "floppy:a", "synthetic:A B"])
def test_text_that_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(Problem):
        parse_target(text)


def test_an_engine_refuses_a_target_that_it_cannot_load() -> None:
    with pytest.raises(Problem, match="cannot be run on this target") as caught:
        check_target_kind(parse_workload(GOOD), "device")
    assert caught.value.faults[0].field == "target.kind"
