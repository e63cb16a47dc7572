from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from cliffwatch.base.errors import Code, Problem
from cliffwatch.model.trigger import anchored, fire_times, fire_times_until, parse_trigger


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def times(document: dict[str, Any], after: str, count: int = 5) -> list[str]:
    """The next fire times, in UTC."""
    trigger = parse_trigger(document).trigger()
    found = fire_times(trigger, seconds(after), count)
    return [datetime.fromtimestamp(moment, UTC).strftime("%m-%d %H:%M") for moment in found]


def cron(expression: str, zone: str = "UTC") -> dict[str, Any]:
    return {"kind": "cron", "expression": expression, "time_zone": zone}


# In Berlin clocks go from 02:00 to 03:00 on 29 March 2026, and from 03:00 back to 02:00 on 25 October.


def test_a_local_hour_stays_the_same_over_a_change_of_clocks() -> None:
    assert times(cron("0 4 * * *", "Europe/Berlin"), "2026-03-28T00:00Z", 3) == [
        "03-28 03:00", "03-29 02:00", "03-30 02:00",
    ]  # fmt: skip


def test_a_time_that_is_left_out_comes_when_it_would_have_come() -> None:
    assert times(cron("30 2 * * *", "Europe/Berlin"), "2026-03-28T12:00Z", 2) == ["03-29 01:30", "03-30 00:30"]


def test_a_time_that_comes_twice_counts_once() -> None:
    assert times(cron("30 2 * * *", "Europe/Berlin"), "2026-10-24T12:00Z", 3) == [
        "10-25 00:30", "10-26 01:30", "10-27 01:30",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "zone",
    ["Africa/Cairo", "Asia/Beirut", "America/Santiago", "America/Havana", "America/Nuuk", "America/Asuncion",
     "Australia/Lord_Howe", "Antarctica/Troll", "Africa/Casablanca", "Europe/Dublin", "Pacific/Chatham"],
)  # fmt: skip
def test_every_day_has_its_midnight_also_where_clocks_change_at_it(zone: str) -> None:
    trigger = parse_trigger(cron("0 0 * * *", zone)).trigger()
    found = fire_times(trigger, seconds("2026-01-02T00:30Z"), 2 * 365)
    days = [datetime.fromtimestamp(moment, ZoneInfo(zone)).date().toordinal() for moment in found]
    assert days == list(range(days[0], days[0] + len(days)))
    assert all(22 * 3600 <= later - earlier <= 26 * 3600 for earlier, later in pairwise(found))


@pytest.mark.parametrize("zone", ["Africa/Cairo", "America/Havana", "Australia/Lord_Howe", "Antarctica/Troll"])
def test_every_minute_comes_once_over_a_year(zone: str) -> None:
    trigger = parse_trigger(cron("*/5 * * * *", zone)).trigger()
    for day in ("03-08", "03-29", "04-05", "04-24", "10-04", "10-25", "10-30", "11-01"):
        found = fire_times(trigger, seconds(f"2026-{day}T00:00Z") - 12 * 3600, 2 * 288)
        assert found == [found[0] + 300 * count for count in range(len(found))]


def test_every_second_hour_leaves_one_out_that_does_not_exist() -> None:
    assert times(cron("0 */2 * * *", "Europe/Berlin"), "2026-03-28T22:30Z", 3) == [
        "03-28 23:00", "03-29 02:00", "03-29 04:00",
    ]  # fmt: skip


def test_every_hour_is_every_hour_over_a_change_of_clocks() -> None:
    assert times(cron("30 * * * *", "Europe/Berlin"), "2026-10-24T23:00Z", 4) == [
        "10-24 23:30", "10-25 00:30", "10-25 01:30", "10-25 02:30",
    ]  # fmt: skip
    assert times(cron("30 * * * *", "Europe/Berlin"), "2026-03-29T00:00Z", 3) == [
        "03-29 00:30", "03-29 01:30", "03-29 02:30",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("field", "days"),
    [
        ("0", ["Sun"]),
        ("7", ["Sun"]),
        ("1", ["Mon"]),
        ("sat", ["Sat"]),
        ("5-7", ["Fri", "Sat", "Sun"]),
        ("sat-mon", ["Sat", "Sun", "Mon"]),
        ("1,3", ["Mon", "Wed"]),
        ("0-6/2", ["Sun", "Tue", "Thu", "Sat"]),
        ("*/3", ["Sun", "Wed", "Sat"]),
        ("4/2", ["Thu", "Sat"]),
    ],
)
def test_days_of_the_week_are_counted_as_crontab_counts_them(field: str, days: list[str]) -> None:
    trigger = parse_trigger(cron(f"0 0 * * {field}")).trigger()
    # A week from Monday, 2 November 2026, on.
    found = fire_times_until(trigger, seconds("2026-11-01T12:00Z"), seconds("2026-11-08T12:00Z"), 10)
    names = [datetime.fromtimestamp(moment, UTC).strftime("%a") for moment in found]
    assert sorted(names) == sorted(days)


def test_an_interval_is_counted_from_its_start() -> None:
    every = {"kind": "interval", "every": "6h", "start_at": "2026-01-01T01:00:00+01:00"}
    assert times(every, "2026-11-21T07:30Z", 2) == ["11-21 12:00", "11-21 18:00"]
    assert times(every, "2025-12-31T00:00Z", 2) == ["01-01 00:00", "01-01 06:00"]


def test_an_interval_without_a_start_keeps_the_one_that_it_was_given() -> None:
    stored = anchored(parse_trigger({"kind": "interval", "every": "6h"}), seconds("2026-11-21T07:30Z"))
    assert times(stored, "2026-11-21T07:30Z", 2) == ["11-21 13:30", "11-21 19:30"]
    assert anchored(parse_trigger(stored), 0.0) == stored


@pytest.mark.parametrize("now", [1_790_000_000.0, 1_790_000_000.384031, 1_790_000_000.999999])
def test_an_interval_does_not_fire_at_the_moment_it_is_made(now: float) -> None:
    trigger = parse_trigger(anchored(parse_trigger({"kind": "interval", "every": "6h"}), now)).trigger()
    assert fire_times(trigger, now, 1) == [1_790_000_000.0 + 6 * 3600]


def test_a_date_comes_once() -> None:
    once = {"kind": "date", "at": "2026-12-24T18:00:00Z"}
    assert times(once, "2026-11-21T07:30Z") == ["12-24 18:00"]
    assert times(once, "2026-12-24T18:00Z") == []


def test_a_fire_time_is_later_than_the_moment_asked_about() -> None:
    assert times(cron("0 2 * * *"), "2026-11-21T02:00Z", 1) == ["11-22 02:00"]


@pytest.mark.parametrize(
    ("document", "field", "remedy"),
    [
        ({}, "trigger", "kind"),
        ({"kind": "moon"}, "trigger", "cron"),
        (cron("0 2 * *"), "trigger.expression", "minute, hour"),
        (cron("@daily"), "trigger.expression", "minute, hour"),
        (cron("0 2 last * *"), "trigger.expression", "minute, hour"),
        (cron("61 * * * *"), "trigger.expression", "'61 * * * *': minute '61' cannot be"),
        (cron("0 25 * * *"), "trigger.expression", "the maximum value (23)); write 0 to 23"),
        (cron("*/0 * * * *"), "trigger.expression", "higher than 0"),
        (cron("0 0 * * 8"), "trigger.expression", "sun to sat"),
        (cron("0 0 * * 1/x"), "trigger.expression", "day of"),
        (cron("0 0 13 * fri"), "trigger.expression", "two schedules"),
        (cron("0 0 31 2 *"), "trigger.expression", "never comes"),
        (cron("0 2 * * *", "Berlin"), "trigger.time_zone", "Europe/Berlin"),
        (cron("0 2 * * *", "../etc/passwd"), "trigger.time_zone", "IANA"),
        ({**cron("0 2 * * *"), "jitter": 5}, "trigger.jitter", "unknown key"),
        ({"kind": "interval", "every": "6"}, "trigger.every", "36h"),
        ({"kind": "interval", "every": "0s"}, "trigger.every", "1"),
        (
            {"kind": "interval", "every": "6h", "start_at": "2026-01-01T00:00:00"},
            "trigger.start_at",
            "with a time zone; write one such as 2026-12-24T18:00:00Z",
        ),
        (
            {"kind": "date", "at": "tomorrow"},
            "trigger.at",
            "'tomorrow' is not a timestamp with a time zone;",
        ),
        ({"kind": "date", "at": "2026-12-24T18:00:00"}, "trigger.at", "with a time zone"),
    ],
)
def test_a_wrong_trigger_names_its_field_and_the_remedy(document: dict[str, Any], field: str, remedy: str) -> None:
    with pytest.raises(Problem) as caught:
        parse_trigger(document)
    assert caught.value.code is Code.SCHEDULE_INVALID
    assert [fault.field for fault in caught.value.faults] == [field]
    assert remedy in caught.value.faults[0].message
