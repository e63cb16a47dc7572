"""What fires now: of a run by its journal, of no run by its notifications, and for how long that is believed."""

from pathlib import Path

from testkit import journals
from tests.api.harness import Api, serving
from tests.api.notifications import alert, notification

from cliffwatch.app.alerts import STANDING_LIMIT, STANDING_SECONDS
from cliffwatch.base.clock import VirtualClock
from cliffwatch.journal import Event, EventLog, EventType, files
from cliffwatch.model.settings import Settings
from cliffwatch.web.firing import FollowedAlerts


def send_alerts(api: Api, *fingerprints: str, status: str = "firing") -> None:
    alerts = [alert(None, status, fingerprint=each) for each in fingerprints]
    api.post("/alerts", notification(*alerts, status=status)).raise_for_status()


def test_an_alert_that_is_not_repeated_is_forgotten_and_a_flood_of_them_is_bounded(settings: Settings) -> None:
    clock = VirtualClock(journals.START)
    with serving(settings, clock) as api:
        send_alerts(api, "a1", "a2")
        clock.sleep(STANDING_SECONDS - 60)
        send_alerts(api, "a2")
        assert {each.fingerprint for each in api.services.alerts.standing()} == {"a1", "a2"}
        clock.sleep(120)
        assert [each.fingerprint for each in api.services.alerts.standing()] == ["a2"]
        send_alerts(api, *(f"b{number}" for number in range(STANDING_LIMIT)))
        assert len(api.services.alerts.standing()) == STANDING_LIMIT
        send_alerts(api, *(f"b{number}" for number in range(STANDING_LIMIT)), status="resolved")
        assert api.services.alerts.standing() == []


def test_a_journal_is_followed_and_read_anew_when_it_was_replaced(tmp_path: Path) -> None:
    directory = journals.queue(tmp_path, "one")
    log, followed = EventLog(directory), FollowedAlerts()

    def add(name: str, status: str) -> None:
        detail = {"status": status, "fingerprint": name, "starts_at": journals.START, "labels": {"run_id": "one"}}
        log.append(Event(journals.START, EventType.ALERT, name, detail))

    assert followed.of(directory) == []
    add("High", "firing")
    add("Low", "firing")
    assert [each.name for each in followed.of(directory)] == ["High", "Low"]
    add("High", "resolved")
    assert [each.name for each in followed.of(directory)] == ["Low"]
    path = directory / files.EVENTS
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    assert followed.of(directory) == []
