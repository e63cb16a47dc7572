"""A run's windows and events as what detection works on."""

import pytest

from cliffwatch.analysis.finding import Notice, Role
from cliffwatch.analysis.journal_series import notices_from_events, preferred_latencies, samples_from_windows
from cliffwatch.journal.events import Event, EventType
from cliffwatch.journal.windows import JournalWindow

SUMMARY = {"count": 100.0, "max": 0.09, "p50": 0.001, "p90": 0.002, "p99": 0.004, "p999": 0.01, "p9999": None}


def window(counters: dict[str, int], gauges: dict[str, float] | None = None) -> JournalWindow:
    latency: dict[str, dict[str, float | None]] = {"append": dict(SUMMARY), "append_service": dict(SUMMARY)}
    return JournalWindow(0, 100.0, 110.0, "soak", counters, gauges or {}, latency, (0, 0))


def test_a_window_gives_quantiles_rate_and_what_devices_measure() -> None:
    counters = {"operations": 5000, "device_write_operations": 400, "device_write_milliseconds": 80}
    gauges = {"device_queue_depth": 3.5, "device_write_amplification": 1.8}
    series, samples = samples_from_windows([window(counters, gauges)])
    (sample,) = samples
    assert (sample.start, sample.end, sample.phase) == (100, 110, "soak")
    assert sample.values["append.p99"] == 0.004
    assert "append.p9999" not in sample.values
    assert sample.values["operations_per_second"] == 500
    assert sample.values["device.write_latency"] == pytest.approx(0.0002)
    assert sample.values["device.queue_depth"] == 3.5
    assert sample.values["device.write_amplification"] == 1.8
    by_name = {one.name: one for one in series}
    assert (by_name["append.p999"].operation, by_name["append.p999"].quantile) == ("append", 0.999)
    assert by_name["device.write_latency"].role is Role.DEVICE_LATENCY
    assert by_name["device.write_amplification"].role is Role.WRITE_AMPLIFICATION
    assert set(sample.values) <= set(by_name)


def test_each_of_several_drives_has_its_own_series() -> None:
    counters = {
        "operations": 1,
        "device_write_operations": 30,
        "device_write_milliseconds": 30,
        "8:0.write_operations": 20,
        "8:0.write_milliseconds": 10,
        "8:16.write_operations": 10,
        "8:16.write_milliseconds": 20,
    }
    gauges = {"8:16.queue_depth": 2.0, "8:16.write_amplification": 3.1}
    series, (sample,) = samples_from_windows([window(counters, gauges)])
    assert sample.values["device.write_latency.8:0"] == pytest.approx(0.0005)
    assert sample.values["device.write_latency.8:16"] == pytest.approx(0.002)
    assert sample.values["device.queue_depth.8:16"] == 2
    assert sample.values["device.write_amplification.8:16"] == 3.1
    assert {one.device for one in series if one.role is Role.DEVICE_LATENCY} == {None, "8:0", "8:16"}


def test_unmeasured_series_are_absent_and_not_zero() -> None:
    _, (sample,) = samples_from_windows([window({"device_write_operations": 0, "device_write_milliseconds": 0})])
    assert not any(name.startswith("device") or name == "operations_per_second" for name in sample.values)


def test_a_rate_is_per_measured_second() -> None:
    _, (sample,) = samples_from_windows([window({"operations": 500}, {"measured_seconds": 5.0})])
    assert sample.values["operations_per_second"] == 100


def test_latency_from_the_due_time_is_preferred() -> None:
    assert preferred_latencies(["append", "append_service", "read_service"]) == ["append", "read_service"]


def test_deaths_changes_of_leader_and_gaps_explain_and_phases_do_not() -> None:
    events = [
        Event(1.0, EventType.ENGINE, "died"),
        Event(2.0, EventType.ENGINE, "leader_changed"),
        Event(3.0, EventType.GAP, "gap"),
        Event(4.0, EventType.PHASE, "soak"),
        Event(5.0, EventType.ENGINE, "segment_deleted"),
        Event(6.0, EventType.ENGINE, "broker_restarted"),
    ]
    assert notices_from_events(events) == [Notice(1, "died"), Notice(2, "leader_changed"), Notice(3, "gap")]


def test_a_window_in_which_nothing_completed_is_as_slow_as_its_oldest_operation_is_old() -> None:
    healthy = JournalWindow(
        0, 0.0, 1.0, "soak", {"operations": 10}, {}, {"append": {"count": 10, "p99": 0.004}}, (0, 0)
    )
    gauges = {"oldest_outstanding_seconds": 7.5}
    stalled = JournalWindow(1, 1.0, 2.0, "soak", {"operations": 0}, gauges, {}, (0, 0))
    idle = JournalWindow(2, 2.0, 3.0, "soak", {"operations": 0}, {}, {}, (0, 0))
    _, samples = samples_from_windows([healthy, stalled, idle])
    assert [sample.values.get("append.p99") for sample in samples] == [0.004, 7.5, None]
