"""What a report says of a cliff: when, on which drive and why, with the evidence."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testkit.recorded_runs import LOAD_START, at_window, make_journal
from tests.report.cliff_run import BYTES, CLIFF, DRIVE, FACTS, OPERATIONS, PLAN, WINDOWS, counters, latency
from tests.report.documents import document_of
from tests.report.telemetry_files import write_telemetry

from cliffwatch.analysis.finding import Finding, FindingKind, Role, Series
from cliffwatch.analysis.run_analysis import grouped
from cliffwatch.analysis.wording import correlated_series
from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import Event, EventType
from cliffwatch.report.build import build, write
from cliffwatch.report.findings import with_detection


def with_drive(directory: Path, amplification: float = 3.2, clean: float = 0.02) -> Path:
    """What the drive's own counters said: from the cliff on it writes more to flash, and has fewer free blocks."""
    host = np.arange(WINDOWS + 1) * float(BYTES)
    media = np.concatenate([[0.0], np.cumsum([BYTES * (1.01 if i < CLIFF else amplification) for i in range(WINDOWS)])])
    blocks = [max(clean, 0.6 - 0.002 * i) if i < CLIFF else clean for i in range(WINDOWS + 1)]
    write_telemetry(
        directory,
        LOAD_START,
        10.0,
        {
            ("drive_host_written_bytes_total", "nvme0n1"): host.tolist(),
            ("drive_media_written_bytes_total", "nvme0n1"): media.tolist(),
            ("drive_free_blocks_ratio", "nvme0n1"): blocks,
        },
    )
    return directory


@pytest.fixture(scope="module")
def collecting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that fell off its drive's cliff, which was raised during the run."""
    raised = Event(at_window(PLAN, CLIFF + 12), EventType.FINDING, "cliff", {"onset": at_window(PLAN, CLIFF)})
    return with_drive(make_journal(tmp_path_factory.mktemp("collecting") / "run", replace(PLAN, events=(raised,))))


def the_cliff(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = [finding for finding in document["findings"] if finding["degrades"]]
    assert found["kind"] in ("cliff", "step")
    assert found["onset_seconds"] == pytest.approx(CLIFF * 10, abs=30)
    return found


def test_a_drive_that_collects_garbage_is_named_with_when_where_and_why(collecting: Path) -> None:
    document = document_of(collecting)
    found = the_cliff(document)
    assert document["verdict"]["name"] == "degraded"
    assert found["cause"]["name"] == "drive_garbage_collection"
    assert found["drive"] == DRIVE
    assert found["layer"]["name"] == "device"
    assert found["ratio"] > 10
    assert found["operation"] == "write"
    assert found["detected_seconds"] == (CLIFF + 12) * 10
    assert document["unconfirmed"] == []
    amplification = "Write amplification rose from 1.01 over 5m before the onset to 3.2"
    assert any(amplification in sentence for sentence in found["cause"]["evidence_for"])
    for words in ("Cliff at 0:", "write p99 rose", "on nvme0n1", "drive garbage collection"):
        assert words in document["headline"]


def test_verdict_and_cause_say_how_much_they_were_judged_by(collecting: Path, tmp_path: Path) -> None:
    document = document_of(collecting)
    whole = document["verdict"]["judged_by"]
    soak = sum(phase["windows"] for phase in document["phases"] if phase["name"] in ("baseline", "soak"))
    assert whole == {
        "windows": soak,
        "operations": soak * 10_000,
        "drive_windows": soak,
        "drive_samples": soak + 1,
    }
    found = the_cliff(document)["judged_by"]
    assert found["before"]["windows"] == found["since"]["windows"] == 30
    assert found["before"]["drive_samples"] == 31
    alone = document_of(make_journal(tmp_path, replace(PLAN, counters=lambda index: {"operations": 1})))
    assert alone["verdict"]["judged_by"] == whole | {"operations": soak, "drive_windows": 0, "drive_samples": 0}
    assert the_cliff(alone)["judged_by"]["since"]["drive_samples"] == 0
    write(collecting, build(collecting))
    page = " ".join((collecting / "report.html").read_text().split())
    assert f"Judged by {soak} windows with" in page
    assert "Compared are 30 windows with" in page


def test_the_page_opens_with_the_finding_and_draws_its_evidence(collecting: Path) -> None:
    write(collecting, build(collecting))
    first = [(collecting / name).read_bytes() for name in ("report.json", "report.html")]
    write(collecting, build(collecting))
    assert [(collecting / name).read_bytes() for name in ("report.json", "report.html")] == first
    page = first[1].decode()
    assert page.index("drive garbage collection") < page.index('id="over-time"')
    data = json.loads(page.split('id="report-data">')[1].split("</script>")[0])
    assert set(data["evidence"]) == {"device_write_latency", "write_amplification", "clean_blocks"}
    (drawn,) = [finding for finding in data["findings"] if finding["degrades"]]
    assert drawn["latency"] == "write"
    assert drawn["baseline"] == pytest.approx(2800, rel=0.2)
    assert data["evidence"]["write_amplification"][CLIFF + 20] == pytest.approx(3.2)
    assert data["evidence"]["clean_blocks"][CLIFF + 20] == 0.02


def test_a_drive_that_reports_nothing_of_itself_is_not_accused_of_garbage_collection(tmp_path: Path) -> None:
    found = the_cliff(document_of(make_journal(tmp_path, PLAN)))
    assert found["cause"]["name"] == "unknown"
    assert found["layer"]["name"] == "device"
    assert "Not measured here" in found["tell_apart"]
    assert "cause not known; first layer to slow down: the device, with its queue" in found["sentence"]


def test_a_volume_that_went_over_its_limit_is_named_and_not_garbage_collection(tmp_path: Path) -> None:
    directory = make_journal(tmp_path, PLAN)
    over = np.concatenate([[0.0], np.cumsum([0.0 if i < CLIFF else 9.2 for i in range(WINDOWS)])])
    within = np.zeros(WINDOWS + 1)
    write_telemetry(
        directory,
        LOAD_START,
        10.0,
        {
            ("drive_limit_exceeded_seconds_total", "nvme0n1", "volume_throughput"): over.tolist(),
            ("drive_limit_exceeded_seconds_total", "nvme0n1", "volume_iops"): within.tolist(),
        },
    )
    document = document_of(directory)
    found = the_cliff(document)
    assert found["cause"]["name"] == "volume_limit"
    assert (
        "More was asked for than the volume's limit of throughput allows, for 92 % of the time, before for 0 %."
        in (found["cause"]["evidence_for"])
    )
    assert "the volume's limit" in document["headline"]


def test_a_neighbour_and_a_processor_limit_are_distinguished_from_a_drive(tmp_path: Path) -> None:
    neighbour = replace(PLAN, counters=counters(others=(0, 4 * BYTES)))
    found = the_cliff(document_of(with_drive(make_journal(tmp_path / "neighbour", neighbour), 1.01, 0.3)))
    assert found["cause"]["name"] == "neighbour"
    held = replace(PLAN, counters=counters(milliseconds=(900, 920), held=(0, 8_000)))
    document = document_of(with_drive(make_journal(tmp_path / "held", held), 1.01, 0.3))
    found = the_cliff(document)
    assert found["cause"]["name"] == "client"
    assert "drive" not in found
    assert document["verdict"]["name"] == "invalid"
    assert document["headline"].startswith("The client was the bottleneck: The engine was throttled")


def test_of_two_drives_the_one_that_slowed_down_is_named(tmp_path: Path) -> None:
    def of_two(index: int) -> dict[str, int]:
        slow = 14_000 if index >= CLIFF else 450
        each = {"259:0.write_operations": 500, "259:0.write_milliseconds": 450}
        each |= {"259:1.write_operations": 500, "259:1.write_milliseconds": slow}
        return counters((900, 14_450))(index) | each

    other = {"name": "nvme1n1", "major_minor": "259:1", "serial": "S2AGING"}
    plan = replace(PLAN, counters=of_two, facts=FACTS | {"drives": [DRIVE, other]})
    assert the_cliff(document_of(make_journal(tmp_path, plan)))["drive"] == other


@pytest.mark.parametrize("prefixes", [("left/", "right/"), ("", "")], ids=["by part", "earlier version"])
def test_a_finding_names_the_slow_drive_of_two_parts(tmp_path: Path, prefixes: tuple[str, str]) -> None:
    """Kernels of two hosts may give their drives equal numbers; windows of earlier versions have the number alone."""
    by_part = prefixes[0] != ""
    drives = [
        {"name": "nvme0n1", "major_minor": "259:0", "serial": "S1AGING", "part": "left"},
        {"name": "nvme0n1", "major_minor": "259:0" if by_part else "259:1", "serial": "S2AGING", "part": "right"},
    ]

    def of_two(index: int) -> dict[str, int]:
        slow = 14_000 if index >= CLIFF else 450
        left, right = (f"{prefix}{each['major_minor']}" for prefix, each in zip(prefixes, drives, strict=True))
        each = {f"{left}.write_operations": 500, f"{left}.write_milliseconds": 450}
        each |= {f"{right}.write_operations": 500, f"{right}.write_milliseconds": slow}
        return counters((900, 14_450))(index) | each

    plan = replace(PLAN, counters=of_two, facts=FACTS | {"drives": drives})
    assert the_cliff(document_of(make_journal(tmp_path, plan)))["drive"]["serial"] == "S2AGING"


def test_a_healthy_run_has_no_finding_and_passes(tmp_path: Path) -> None:
    plan = replace(PLAN, counters=counters((900, 900)), latency=lambda index: latency(index, after=0.001))
    document = document_of(with_drive(make_journal(tmp_path, plan), 1.01, 0.3))
    assert document["findings"] == []
    assert document["verdict"]["name"] == "pass"


def test_series_that_change_together_are_one_finding() -> None:
    series = {
        "write.p99": Series("write.p99", Role.LATENCY, "write", 0.99),
        "write.p50": Series("write.p50", Role.LATENCY, "write", 0.5),
        "device.write_latency": Series("device.write_latency", Role.DEVICE_LATENCY, device="259:0"),
    }
    findings = [
        Finding(FindingKind.CLIFF, 980.0, "device.write_latency", 1.0, 9.0, 9.0, 0.9, detected=1010.0),
        Finding(FindingKind.STEP, 990.0, "write.p50", 1.0, 2.0, 2.0, 0.9, detected=1060.0),
        Finding(FindingKind.CLIFF, 1000.0, "write.p99", 1.0, 9.0, 9.0, 0.9, detected=1020.0),
        Finding(FindingKind.CLIFF, 5000.0, "write.p99", 9.0, 90.0, 10.0, 0.9),
    ]
    first, second = grouped(findings, series, 10.0)
    assert (first.series, first.kind, first.onset) == ("write.p99", FindingKind.CLIFF, 1000.0)
    assert first.corroborated_by == ("write.p50", "device.write_latency")
    assert first.detected == 1010.0
    assert second.onset == 5000.0


@pytest.mark.parametrize(("ended", "onset"), [(None, 90.0), (130.0, 90.0), (110.0, 121.0)])
def test_a_cliff_began_where_it_was_seen_to_begin_if_it_lasted(ended: float | None, onset: float) -> None:
    key = {"kind": "cliff", "series": "append.p99", "onset": 90.0}
    events = [Event(100.0, EventType.FINDING, "cliff", key)]
    if ended is not None:
        events.append(Event(ended + 5, EventType.NOTE, "finding_ended", key | {"until": ended}))
    found = Finding(FindingKind.CLIFF, 121.0, "append.p99", 0.005, 10.0, 2000.0, 0.9)
    recorded = with_detection(found, events, 1.0)
    assert (recorded.onset, recorded.detected) == (onset, 100.0)


def test_of_two_operations_that_changed_together_both_are_named() -> None:
    known = {name: Series(f"{name}.p99", Role.LATENCY, name, 0.99) for name in ("append", "read", "sync")}
    series = {one.name: one for one in known.values()}
    findings = [
        Finding(FindingKind.CLIFF, 1000.0 + shift, name, 1.0, 9.0, 9.0, 0.9) for shift, name in enumerate(series)
    ]
    (finding,) = grouped(findings, series, 10.0)
    assert correlated_series(finding, series) == "; so did the sync p99 and the read p99"
    assert correlated_series(replace(finding, kind=FindingKind.RECOVERY), series) == ""


def test_an_analysis_that_fails_costs_no_report_and_is_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> list[Finding]:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("cliffwatch.report.findings.analysis", fail)
    document = document_of(make_journal(tmp_path))
    assert document["verdict"]["name"] == "invalid"
    assert "The analysis failed" in document["headline"]
    assert "ZeroDivisionError: division by zero" in document["headline"]
    assert document["latency"]["publish"]["load"]["count"] > 0


def test_a_finding_that_was_updated_often_is_one_event_of_the_size_in_the_report(tmp_path: Path) -> None:
    key = {"kind": "cliff", "series": "write.p99", "onset": at_window(PLAN, CLIFF)}
    details = [key | {"summary": f"{place} times."} for place in range(25)]
    updates = [
        Event(at_window(PLAN, CLIFF + 20 + place), EventType.NOTE, "finding_updated", detail)
        for place, detail in enumerate(details)
    ]
    report = build(make_journal(tmp_path, replace(PLAN, events=tuple(updates))))
    assert [text for _, _, text in report.series.marks if "times." in text] == []
    assert [each for each in report.document["events"] if each["name"] == "finding_updated"] == []
    assert [each["at"] for each in report.series.findings] == [pytest.approx(CLIFF * 10, abs=30)]


def test_layer_and_cause_are_one_statement_that_names_its_spans(tmp_path: Path) -> None:
    document = document_of(make_journal(tmp_path, PLAN))
    found = the_cliff(document)
    layer = found["layer"]
    assert layer["sentence"].startswith("On average an operation took ")
    assert " over 5m after it instead of " in layer["sentence"]
    assert " over 5m before the onset. First layer to slow down: " in layer["sentence"]
    stated = layer["sentence"].partition("First layer to slow down: ")[2].partition(" of the rise")[0]
    # The verdict says the same of the layer, with its share.
    assert f"cause not known; first layer to slow down: {stated} of the rise" in found["sentence"]


def test_a_client_that_asks_for_less_is_no_fault_of_a_drive(tmp_path: Path) -> None:
    """From window 60 on the rate is a quarter of what it was, and what is asked for is served as fast as before."""

    def asked_for(index: int) -> int:
        return OPERATIONS if index < 60 else OPERATIONS // 4

    def fades(index: int) -> dict[str, Histogram]:
        noise = np.random.default_rng(index)
        histogram = Histogram()
        histogram.record_many(np.rint(noise.lognormal(np.log(0.001), 0.45, asked_for(index)) * 1e9).astype(np.int64))
        return {"write": histogram}

    def counted(index: int) -> dict[str, int]:
        return counters((900, 900))(index) | {"operations": asked_for(index)}

    journal = make_journal(tmp_path, replace(PLAN, windows=300, counters=counted, latency=fades))
    document = document_of(journal)
    (found,) = document["findings"]
    assert (found["kind"], found["undone"]["limited_by"]) == ("shortfall", "client")
    assert document["verdict"]["name"] == "invalid"
    assert {"drive", "cause", "layer"}.isdisjoint(found)
    assert "on drive" not in found["sentence"]
    assert "cause" not in found["sentence"]
    write(journal, build(journal))
    page = (journal / "report.html").read_text()
    assert "The client was the limit, so the verdict says nothing about the target." in page
    assert "It did not affect the client" not in page


def test_spikes_at_equal_distances_say_when_the_next_is_expected(tmp_path: Path) -> None:
    """While they go on; after a mark by which they are over it would be of no use."""
    spiky = replace(PLAN, latency=lambda index: latency(0, after=0.001) if index % 60 else latency(0, before=0.030))
    (spikes,) = [each for each in document_of(make_journal(tmp_path / "run", spiky))["findings"] if each["degrades"]]
    recurrence = spikes["recurrence"]
    assert spikes["kind"] == "spikes"
    assert recurrence["next_expected_seconds"] == pytest.approx(recurrence["times"] * 600.0 + spikes["onset_seconds"])
