"""Where the time of an operation goes, and what lies between the client's latency and the device's."""

from dataclasses import replace

import pytest

from cliffwatch.analysis.causes.diagnosis import diagnose
from cliffwatch.analysis.causes.measures import Change, Measures
from cliffwatch.analysis.layers import Layer, LayerTimes, compare, describe_gap


def times(client: float, device: float, requests: float = 1.0, **more: float) -> LayerTimes:
    """Milliseconds."""
    found = LayerTimes(client / 1000, device_seconds=device / 1000, requests_per_operation=requests)
    return replace(found, **{name: value / 1000 for name, value in more.items()})  # type: ignore[arg-type]


def test_a_database_at_2_87_ms_on_a_block_layer_at_1_31_ms_waits_for_several_requests_in_a_row() -> None:
    """A published measurement that left the question open: 348 transactions a second, 23,877 requests in 30 s."""
    found = LayerTimes(
        0.002873, device_seconds=31.194968942 / 23_877, requests_per_operation=23_877 / (348.055502 * 30)
    )
    assert found.below_seconds == pytest.approx(0.002988, abs=1e-6)
    sentence = describe_gap(found)
    assert "2.87 ms on average, a request in the block layer 1.31 ms (queue and device)" in sentence
    assert "2.29 requests, 2.99 ms together" in sentence
    assert "account for all of it" in sentence


def test_one_request_is_one() -> None:
    assert "the drive completed 1 request, 29 ms. The rem" in describe_gap(times(33.0, 29.0))


def test_the_rise_is_put_in_the_layer_that_grew() -> None:
    healthy = times(1.0, 0.8, service_seconds=1.0, queue_seconds=0.1)
    cases = {
        Layer.DEVICE: times(41.0, 40.0, service_seconds=41.0, queue_seconds=0.2),
        Layer.QUEUE: times(41.0, 0.9, service_seconds=41.0, queue_seconds=39.5),
        Layer.ABOVE_BLOCK_LAYER: times(41.0, 0.8, service_seconds=41.0, queue_seconds=0.1),
        Layer.SCHEDULE: times(41.0, 0.8, service_seconds=1.2, queue_seconds=0.1),
    }
    for layer, after in cases.items():
        comparison = compare(healthy, after)
        assert comparison.grew is layer
        assert comparison.share is not None
        assert comparison.share > 0.9
        assert "41 ms instead of 1 ms" in comparison.sentence


def test_a_slow_device_is_named_although_most_of_the_time_is_spent_waiting_for_it() -> None:
    """An engine with a schedule falls behind when the drive is slow: the wait is a consequence and not the cause."""
    before = times(3.7, 0.5, 5.0, service_seconds=2.9, queue_seconds=0.04)
    after = times(5150.0, 110.0, 4.4, service_seconds=1770.0, queue_seconds=85.0)
    comparison = compare(before, after)
    assert comparison.grew is Layer.DEVICE
    assert comparison.share is not None
    assert comparison.share < 0.2
    assert "the rest is queueing upstream, most of it waiting until the engine began" in comparison.sentence


def test_time_above_the_block_layer_is_named_and_so_are_requests_that_no_client_waits_for() -> None:
    assert "remaining 8 ms lie above the block layer" in describe_gap(times(10.0, 2.0))
    assert "5 ms passed before the engine began it" in describe_gap(times(10.0, 5.0, service_seconds=5.0))
    assert "12 ms more than the client waited" in describe_gap(times(4.0, 2.0, requests=8.0))


def test_without_a_device_there_is_no_layer_to_name() -> None:
    comparison = compare(LayerTimes(0.001, 0.001), LayerTimes(0.5, 0.001))
    assert comparison.grew is None
    assert comparison.sentence == comparison.gap == ""


def test_no_layer_is_blamed_when_latency_did_not_rise() -> None:
    assert compare(times(2.0, 1.0), times(1.9, 1.2)).grew is None


def test_a_drive_that_is_175_times_slower_is_the_first_layer_however_much_queues_up_above_it() -> None:
    """Requests are merged when they queue: a twentieth of a request for each operation, 1 % of the rise."""
    before = times(6.0, 0.1, 0.5, service_seconds=5.0)
    after = times(700.0, 17.5, 0.05, service_seconds=600.0)
    comparison = compare(before, after)
    assert comparison.grew is Layer.DEVICE
    # 0.825 ms of the 694 ms are the device's own.
    assert comparison.share == pytest.approx(0.825 / 694, abs=0.0005)


def test_a_schedule_that_slips_behind_a_drive_that_lost_its_reserve_is_not_the_first_layer() -> None:
    """At the limit of a drive a third more is enough to fall behind without end."""
    after = times(900.0, 1.3, service_seconds=1.4)
    assert compare(times(1.1, 1.0, service_seconds=1.1), after).grew is Layer.DEVICE


def test_the_queue_is_part_of_no_devices_latency() -> None:
    """Most of it waits in the block layer: what the kernel counts is the queue and the device, and is called so."""
    before = times(0.6, 0.3, service_seconds=0.6, queue_seconds=0.01)
    after = times(13.1, 0.478, service_seconds=13.1, queue_seconds=12.1)
    comparison = compare(before, after)
    assert comparison.statement == "first layer to slow down: queueing in the block layer, with 97 % of the rise"
    assert "a request in the block layer 12.6 ms (12.1 ms in its queue, 478 µs in the device)" in comparison.gap
    assert compare(times(1.0, 0.8), times(41.0, 40.0)).title == "the device, with its queue in the block layer"
    slower = Measures(device_write_latency_seconds=Change(0.00031, 0.0126), write_amplification=Change(1.0, 1.79))
    sentences = " ".join(diagnose(slower, Layer.QUEUE).first.evidence_for)
    assert "write latency at the block layer (queue and device) rose from" in sentences
    assert "drive's write latency" not in sentences


def test_no_layer_is_said_to_be_in_above_another() -> None:
    comparison = compare(times(1.0, 0.8, queue_seconds=0.1), times(41.0, 0.8, queue_seconds=0.1))
    assert comparison.statement.startswith("first layer to slow down: above the block layer (")
