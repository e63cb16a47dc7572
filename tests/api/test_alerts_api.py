"""Alertmanager's webhook: its alerts are recorded in journals, once."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from testkit import journals
from tests.api.harness import Api, serving
from tests.api.metrics import value
from tests.api.notifications import alert, notification

from cliffwatch.app.alerts import WATCHDOG
from cliffwatch.base.storable import check_text
from cliffwatch.journal import Event, EventType, JournalReader, files
from cliffwatch.model.settings import Settings, read_settings


def live(api: Api, run_id: str = "one") -> Path:
    """The journal of a live run."""
    directory = journals.queue(api.settings.runs_directory, run_id)
    journals.start(directory)
    api.index(run_id)
    return directory


def reported(directory: Path) -> list[Event]:
    return [stored.event for stored in JournalReader(directory).events() if stored.event.type is EventType.ALERT]


def post(api: Api, *alerts: dict[str, Any], **changes: Any) -> dict[str, int]:
    response = api.post("/alerts", notification(*alerts, **changes))
    assert response.status_code == 200, response.text
    body: dict[str, int] = response.json()
    return body


def test_an_alert_becomes_an_event_of_the_run_that_it_names(api: Api) -> None:
    one, other = live(api), live(api, "other")
    assert post(api, alert()) == {"received": 1, "recorded": 1, "repeated": 0, "left_out": 0, "of_no_run": 0}
    [event] = reported(one)
    assert event.name == "QueueFull"
    assert event.detail == {
        "status": "firing",
        "severity": "warning",
        "summary": "The queue is full.",
        "description": "97 % of it.",
        "fingerprint": "66a9e6437657060a",
        "starts_at": 1795251855.459123,
        "ends_at": None,
        "labels": {"alertname": "QueueFull", "severity": "warning", "run_id": "one"},
    }
    assert reported(other) == []
    assert value(api, "alerts_total", outcome="recorded") == 1


def test_a_notification_that_comes_twice_is_recorded_once_also_by_another_service(
    api: Api, settings: Settings, tmp_path: Path
) -> None:
    directory = live(api)
    assert post(api, alert(), alert())["recorded"] == 1
    assert post(api, alert()) == {"received": 1, "recorded": 0, "repeated": 1, "left_out": 0, "of_no_run": 0}
    elsewhere = read_settings(state_directory=tmp_path / "other", runs_directory=settings.runs_directory)
    with serving(elsewhere) as again:
        assert post(again, alert())["repeated"] == 1
    assert len(reported(directory)) == 1


def test_a_resolution_and_a_second_beginning_are_events_of_their_own(api: Api) -> None:
    directory = live(api)
    post(api, alert())
    post(api, alert(status="resolved"))
    post(api, alert(startsAt="2026-11-21T09:10:00Z"))
    assert [event.detail["status"] for event in reported(directory)] == ["firing", "resolved", "firing"]
    assert reported(directory)[1].detail["ends_at"] == 1795251885.459


def test_an_alert_that_names_no_run_goes_to_every_live_run(api: Api) -> None:
    running = [live(api, "one"), live(api, "two")]
    waiting = journals.queue(api.settings.runs_directory, "waiting")
    api.index("waiting")
    assert post(api, alert(None))["recorded"] == 2
    assert [len(reported(directory)) for directory in (*running, waiting)] == [1, 1, 0]


def test_the_watchdog_is_heard_and_is_no_event(api: Api) -> None:
    directory = live(api)
    taken = post(api, alert(None, labels={"alertname": WATCHDOG, "severity": "info"}))
    assert (taken["recorded"], taken["of_no_run"]) == (0, 1)
    assert reported(directory) == []
    assert value(api, "watchdog_timestamp_seconds") > 0


def test_alerts_of_no_live_run_are_counted_and_are_no_error(api: Api) -> None:
    directory = live(api)
    journals.finish(directory)
    unknown = [alert(name) for name in ("unknown", "\0", "../../etc")]
    # The index does not know yet that the run is over; its journal does.
    counted = {"received": 5, "recorded": 0, "repeated": 0, "left_out": 0, "of_no_run": 5}
    assert post(api, *unknown, alert(), alert(None)) == counted
    assert reported(directory) == []


def test_text_that_no_bundle_could_hold_is_replaced(api: Api) -> None:
    directory = live(api)
    strange = alert()
    strange["labels"] |= {"alertname": "a\0b", "c\0": "d\0"}
    assert post(api, strange)["recorded"] == 1
    (event,) = reported(directory)
    assert event.name == "a\ufffdb"
    assert event.detail["labels"]["c\ufffd"] == "d\ufffd"
    # Readers replace it, too; a bundle takes the lines as they are.
    for line in (directory / files.EVENTS).read_text().splitlines():
        check_text(json.loads(line))


def test_unknown_fields_of_a_notification_are_ignored(api: Api) -> None:
    live(api)
    strange = alert() | {"notification_reason": "new", "values": {"A": 1}}
    assert post(api, strange, routeLabels={"team": "storage"}, newest=[1])["recorded"] == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "alerts"),
        (notification(alerts="none"), "alerts"),
        (notification(version="5"), "version"),
        (notification(alert(status="pending")), "alerts.0.status"),
        (notification(alert(startsAt="yesterday")), "alerts.0.startsAt"),
        (notification(alert(startsAt="2026-11-21T09:04:15")), "alerts.0.startsAt"),
        (notification(alert(fingerprint="")), "alerts.0.fingerprint"),
        (notification("alert"), "alerts.0"),
        (notification(alert(fingerprint="a\0b")), "alerts.0.fingerprint"),
        (notification(alert(labels={"run_id": 1})), "alerts.0.labels.run_id"),
        (notification(alert(labels=None)), "alerts.0.labels"),
    ],
)
def test_a_malformed_notification_is_refused_by_field(api: Api, body: dict[str, Any], field: str) -> None:
    response = api.post("/alerts", body)
    assert (response.status_code, response.json()["code"]) == (422, "bad_request")
    assert field in {fault["field"] for fault in response.json()["errors"]}


def test_one_malformed_alert_keeps_none_of_the_others_out(api: Api) -> None:
    directory = live(api)
    response = api.post("/alerts", notification(alert(status="pending"), alert(fingerprint="b1"), alert(labels=None)))
    assert response.status_code == 422
    assert response.json()["detail"] == "1 of 3 alerts were taken"
    assert [fault["field"] for fault in response.json()["errors"]] == ["alerts.0.status", "alerts.2.labels"]
    assert [event.detail["fingerprint"] for event in reported(directory)] == ["b1"]


def test_without_a_fingerprint_the_labels_are_what_an_alert_is_known_by(api: Api) -> None:
    directory = live(api)
    first, other = alert(), alert()
    other["labels"] |= {"instance": "b:9100"}
    for each in (first, other):
        del each["fingerprint"]
    assert post(api, first, other)["recorded"] == 2
    assert post(api, first)["repeated"] == 1
    assert len({event.detail["fingerprint"] for event in reported(directory)}) == 2


def test_a_notification_in_grafanas_own_form_is_accepted(api: Api) -> None:
    live(api)
    extra = {"values": {"A": 31.2}, "valueString": "[ var='A' ]", "silenceURL": "http://127.0.0.1/"}
    assert post(api, alert() | extra, version="1", orgId=1, title="[FIRING:1]", state="alerting")["recorded"] == 1


def test_an_alert_that_is_over_does_not_fire_again_until_it_begins_again(api: Api) -> None:
    """One of two Alertmanagers repeats what the other has ended, or ends what this service never heard begin."""
    directory = live(api)
    early, late = "2026-11-21T09:00:00Z", "2026-11-21T10:00:00.000000001+00:00"
    over = alert(None, "resolved", startsAt=early, endsAt="2026-11-21T09:30:00Z")
    post(api, alert(None, startsAt=early), over)
    assert post(api, alert(None, startsAt=early))["repeated"] == 1
    assert api.services.alerts.standing() == []
    assert [event.detail["status"] for event in reported(directory)] == ["firing", "resolved"]
    post(api, alert(None, startsAt=late))
    assert [each.starts_at for each in api.services.alerts.standing()] == [1_795_255_200.0]
    unheard = alert(None, "resolved", startsAt=early, endsAt="2026-11-21T09:30:00Z", fingerprint="b2")
    assert post(api, unheard)["recorded"] == 1
    assert post(api, unheard | {"status": "firing"})["recorded"] == 0


def test_an_oversized_notification_is_refused_and_1500_alerts_are_recorded(api: Api) -> None:
    directory = live(api)
    response = api.post("/alerts", notification(alert(annotations={"summary": "x" * 1024 * 1024})))
    assert (response.status_code, response.json()["code"]) == (413, "body_too_large")
    many = [alert(fingerprint=f"{number:016x}") for number in range(1500)]
    assert post(api, *many)["recorded"] == 1500
    assert len(reported(directory)) == 1500


def test_a_run_takes_no_alerts_without_end_but_the_ends_of_those_it_has(api: Api) -> None:
    directory = live(api)
    many = [alert(fingerprint=f"{number:016x}", annotations={}) for number in range(2001)]
    post(api, *many[:1000])
    taken = post(api, *many[1000:])
    assert (taken["recorded"], taken["left_out"], taken["repeated"]) == (1000, 1, 0)
    ends = post(api, *(each | {"status": "resolved"} for each in (many[0], many[2000])))
    assert (ends["recorded"], ends["left_out"]) == (1, 1)
    notes = [stored.event for stored in JournalReader(directory).events() if stored.event.type is EventType.NOTE]
    assert [(event.name, event.detail) for event in notes] == [("alerts_limited", {"limit": 2000})]
    assert len(reported(directory)) == 2001
    assert value(api, "alerts_total", outcome="left_out") == 2


def test_texts_and_labels_without_end_are_cut(api: Api) -> None:
    directory = live(api)
    labels = {f"label_{number}": "y" * 2000 for number in range(9)} | alert()["labels"]
    assert post(api, alert(annotations={"summary": "x" * 100_000}, labels=labels))["recorded"] == 1
    (event,) = reported(directory)
    assert event.detail["summary"] == "x" * 4095 + "…"
    assert {"run_id", "alertname", "severity", "label_0"} <= set(event.detail["labels"])
    assert len(event.to_line()) < 16_384


def test_looking_is_not_enough_to_send_alerts(api: Api) -> None:
    assert api.post("/alerts", notification(alert()), scope="read").status_code == 403


def fill(path: Path, content: bytes) -> None:
    with path.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(content)


@pytest.fixture
def full(api: Api) -> Iterator[Path]:
    """A live run on a file system without a byte left; `filler` beside its journal is what fills it."""
    runs = api.settings.runs_directory
    runs.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(runs)], check=True)
    try:
        directory = live(api)
        fill(runs / "filler", bytes(4096))
        # What is left of the journal's own last page.
        fill(directory / "events.jsonl", b"\n")
        yield directory
    finally:
        subprocess.run(["umount", str(runs)], check=True)


def test_alerts_refused_on_a_full_disk_are_recorded_when_sent_again(api: Api, full: Path) -> None:
    sent = [alert(), alert(status="resolved")]
    response = api.post("/alerts", notification(*sent))
    assert (response.status_code, response.json()["code"]) == (503, "not_ready")
    assert "the journal of run" in response.json()["detail"]
    (full.parent / "filler").unlink()
    assert post(api, *sent)["recorded"] == 2
    assert [event.detail["status"] for event in reported(full)] == ["firing", "resolved"]


def test_a_journal_that_cannot_be_written_keeps_no_alert_from_the_others(api: Api) -> None:
    spoilt, well = live(api, "a-spoilt"), live(api, "b-well")
    (spoilt / files.EVENTS).rename(spoilt / "aside")
    (spoilt / files.EVENTS).mkdir()
    of_none = alert(run_id=None)
    response = api.post("/alerts", notification(of_none))
    assert (response.status_code, response.json()["code"]) == (503, "not_ready")
    assert "a-spoilt" in response.json()["detail"]
    assert len(reported(well)) == 1
    (spoilt / files.EVENTS).rmdir()
    (spoilt / "aside").rename(spoilt / files.EVENTS)
    assert (post(api, of_none)["recorded"], post(api, of_none)["repeated"]) == (1, 2)
