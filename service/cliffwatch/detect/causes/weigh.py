"""The evidence for and against each cause, as functions of the measures.

Evidence that `shows` is found only where the cause is at work; without any, a cause is never named, however well the
rest fits. What is common to several causes, such as a slow drive, only supports. Weights: 3 strong, 2 fair, 1 weak;
below zero it speaks against.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cliffwatch.detect.causes.measures import Change, Happening, Measures
from cliffwatch.units import format_latency, format_number, format_size

STRONG, FAIR, WEAK = 3.0, 2.0, 1.0

#: The drive's latency counts as risen from this factor on, and as unchanged below the second one.
DEVICE_ROSE, DEVICE_SAME = 1.5, 1.25
#: More load than before, as a factor.
LOAD_ROSE = 1.25
#: Write amplification that rose by this factor and this much.
AMPLIFICATION_ROSE, AMPLIFICATION_ROSE_BY = 1.2, 0.15
#: Clean blocks that fell to this part of what they were.
CLEAN_BLOCKS_FELL = 0.75
#: Share of time, from which on held-back, waiting or stolen processor time can explain anything.
HELD_BACK_RATIO, WAITING_RATIO, STEAL_RATIO = 0.05, 0.25, 0.03
#: Processors that are so busy have no time left.
BUSY_RATIO = 0.95
#: Other people's share of what the drive did, from which on they are a neighbour, in bytes or in requests.
NEIGHBOUR_SHARE = 0.25
#: Share of what was written that stayed in memory before the onset, when the page cache took it.
ABSORBED_RATIO = 0.3
#: Dirty pages so near their limit hold writers up.
DIRTY_NEAR_LIMIT = 0.8
#: From here on NVMe drives throttle, by their usual warning thresholds.
HOT_CELSIUS = 70.0
#: A broker that is restarted, or a leader that moves, explains what begins within so many seconds after it.
HAPPENING_REACH_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sentence with its numbers. `shows`: found only where this cause is at work."""

    sentence: str
    weight: float
    shows: bool = False


def _from_to(change: Change, words: Callable[[float], str]) -> str:
    assert change.values is not None, "told only of what was measured"
    before, after = change.values
    return f"from {words(before)} to {words(after)}"


def _percent(ratio: float) -> str:
    return f"{ratio * 100:.3g} %"


def _rate(bytes_per_second: float) -> str:
    return f"{format_size(bytes_per_second)}/s"


def _device_rose(measures: Measures) -> bool:
    return measures.device_write_latency_seconds.rose(DEVICE_ROSE)


def _device_same(measures: Measures) -> bool:
    change = measures.device_write_latency_seconds
    return change.is_known and not change.rose(DEVICE_SAME)


def _slower_drive(measures: Measures, weight: float) -> Iterator[Evidence]:
    """A slow drive speaks for what is in it or on it."""
    change = measures.device_write_latency_seconds
    if _device_rose(measures):
        yield Evidence(f"A write took the drive longer: {_from_to(change, format_latency)}.", weight)
    elif _device_same(measures):
        yield Evidence(f"A write took the drive no longer: {_from_to(change, format_latency)}.", -STRONG)


def _drive_as_before(measures: Measures) -> Iterator[Evidence]:
    """A slow drive speaks against what is above it."""
    change = measures.device_write_latency_seconds
    if _device_same(measures):
        yield Evidence(f"The drive is as fast as before: a write {_from_to(change, format_latency)}.", FAIR)
    elif _device_rose(measures):
        yield Evidence(f"The drive itself became slower: a write {_from_to(change, format_latency)}.", -FAIR)


def garbage_collection(measures: Measures) -> Iterator[Evidence]:
    amplification = measures.write_amplification
    if amplification.rose(AMPLIFICATION_ROSE, AMPLIFICATION_ROSE_BY):
        words = _from_to(amplification, lambda value: f"{value:.2f}")
        yield Evidence(f"Write amplification rose {words} bytes to flash for each byte given.", STRONG, shows=True)
    elif amplification.values is not None:
        yield Evidence(f"Write amplification did not rise: it is {amplification.values[1]:.2f}.", -STRONG)
    clean = measures.free_blocks_ratio
    if clean.fell(CLEAN_BLOCKS_FELL, by=0.005):
        yield Evidence(f"Clean blocks fell {_from_to(clean, _percent)}.", FAIR, shows=True)
    elif clean.values is not None and clean.values[1] > 0.2:
        yield Evidence(f"The drive has clean blocks left: {_percent(clean.values[1])}.", -FAIR)
    yield from _slower_drive(measures, FAIR)
    given = measures.device_written_bytes_per_second
    if given.rose(LOAD_ROSE):
        yield Evidence(f"The drive was given more to write: {_from_to(given, _rate)}.", -FAIR)
    elif given.is_known:
        yield Evidence(f"The drive was given no more to write: {_from_to(given, _rate)}.", WEAK)
    if measures.device_lead_seconds is not None and measures.device_lead_seconds > 0 and _device_rose(measures):
        seconds = f"{measures.device_lead_seconds:.0f} s"
        yield Evidence(f"The drive's writes slowed down {seconds} before the client's latency rose.", WEAK)
    if _others_took_over(measures):
        yield Evidence("Others than the run began to use the drive.", -STRONG)


def retention(measures: Measures) -> Iterator[Evidence]:
    deletions = measures.deletions_per_second
    if deletions.values is not None:
        before, after = deletions.values
        if after > 0 and before <= after / 10:
            yield Evidence(f"Deletions began: {_from_to(deletions, format_number)} a second.", STRONG, shows=True)
        elif after <= before * DEVICE_SAME:
            yield Evidence("Deletions did not begin here.", -STRONG)
    growth = measures.stored_growth_bytes_per_second
    if growth.fell(0.3, by=1024.0):
        yield Evidence(f"What is stored stopped growing: {_from_to(growth, _rate)}.", FAIR, shows=True)
    elif growth.values is not None and growth.values[1] > 0:
        yield Evidence(f"What is stored went on growing, by {_rate(growth.values[1])}.", -FAIR)
    if measures.discarded_bytes_per_second.rose(2.0, by=1024.0):
        words = _from_to(measures.discarded_bytes_per_second, _rate)
        yield Evidence(f"The drive was told of more deleted space: {words}.", WEAK)


def _absorbed(measures: Measures) -> Change:
    """Share of what the engine wrote that did not reach the drive meanwhile."""

    def share(engine: float | None, device: float | None) -> float | None:
        return None if not engine or device is None else max(0.0, 1.0 - device / engine)

    engine, device = measures.engine_written_bytes_per_second, measures.device_written_bytes_per_second
    return Change(share(engine.before, device.before), share(engine.after, device.after))


def page_cache(measures: Measures) -> Iterator[Evidence]:
    absorbed = _absorbed(measures)
    if absorbed.values is not None:
        before, after = absorbed.values
        if before >= ABSORBED_RATIO and after < before / 2:
            words = f"{_percent(before)} of what was written stayed in memory before, {_percent(after)} after"
            yield Evidence(f"{words}: the page cache was full and writers had to wait for the drive.", STRONG, True)
        elif max(before, after) < 0.05:
            yield Evidence("What was written went to the drive before and after; no page cache took it.", -STRONG)
    dirty, limit = measures.dirty_bytes, measures.dirty_limit_bytes
    if limit and dirty.after is not None and dirty.after >= limit * DIRTY_NEAR_LIMIT:
        held = f"{format_size(dirty.after)} of dirty pages, {_percent(dirty.after / limit)} of the limit"
        near_before = dirty.before is not None and dirty.before >= limit * DIRTY_NEAR_LIMIT
        yield Evidence(
            f"There are {held} at which writers are held up.", WEAK if near_before else FAIR, not near_before
        )
    if measures.writeback_bytes.rose(2.0, by=2.0**20):
        yield Evidence(f"More is under write-back: {_from_to(measures.writeback_bytes, format_size)}.", WEAK)


def client(measures: Measures) -> Iterator[Evidence]:
    throttled = measures.engine_cpu_throttled_ratio
    if throttled.rose(1.5, by=HELD_BACK_RATIO):
        words = _from_to(throttled, _percent)
        yield Evidence(f"The engine was held back by its processor limit, {words} of the time.", STRONG, shows=True)
    elif throttled.is_known:
        yield Evidence("No processor limit held the engine back.", -WEAK)
    waiting = measures.engine_cpu_waiting_ratio
    if waiting.rose(1.5, by=WAITING_RATIO):
        words = _from_to(waiting, format_number)
        yield Evidence(f"The engine's threads waited for a processor: {words} of them at a time.", FAIR, shows=True)
    pressure, busy = measures.cpu_pressure_ratio, measures.cpu_busy_ratio
    if pressure.rose(1.5, by=WAITING_RATIO) and busy.after is not None and busy.after >= BUSY_RATIO:
        words = f"tasks waited for a processor {_from_to(pressure, _percent)} of the time"
        yield Evidence(f"The machine's processors are {_percent(busy.after)} busy, and {words}.", FAIR, shows=True)
    debt, service = measures.schedule_debt_seconds, measures.service_latency_seconds
    if debt.rose(2.0, by=0.01) and service.is_known and not service.rose(DEVICE_SAME):
        words = _from_to(debt, format_latency)
        yield Evidence(f"The engine fell behind its schedule, {words}, though its requests were as fast.", FAIR, True)
    for happening in _near(measures, ("engine_died", "engine_restarted")):
        yield Evidence(f"The engine was started again {_when(happening.seconds)}.", STRONG, shows=True)
    if not measures.cpu_steal_ratio.rose(1.5, by=STEAL_RATIO):
        yield from _drive_as_before(measures)


def broker(measures: Measures) -> Iterator[Evidence]:
    for happening in _near(measures, ("broker", "leader")):
        name = happening.name.replace("_", " ")
        yield Evidence(f"The event `{name}` came {_when(happening.seconds)}.", STRONG, shows=True)
    for change, words in (
        (measures.leader_changes_per_second, "Partitions changed their leader"),
        (measures.disconnects_per_second, "Connections to the broker broke"),
    ):
        if change.rose(2.0, by=0.002):
            yield Evidence(f"{words}: {_from_to(change, format_number)} a second.", STRONG, shows=True)
    if measures.broker_pause_ratio.rose(1.5, by=0.02):
        words = _from_to(measures.broker_pause_ratio, _percent)
        yield Evidence(f"The broker stood still to collect its own garbage, {words} of the time.", STRONG, shows=True)
    if measures.broker_queue_requests.rose(2.0, by=5.0):
        words = _from_to(measures.broker_queue_requests, format_number)
        yield Evidence(f"Requests queued up in the broker, {words}.", FAIR, shows=True)
    yield from _drive_as_before(measures)


def network(measures: Measures) -> Iterator[Evidence]:
    trip = measures.round_trip_seconds
    if trip.rose(1.5, by=0.0003):
        yield Evidence(f"A round trip took longer: {_from_to(trip, format_latency)}.", STRONG, shows=True)
    elif trip.is_known:
        yield Evidence(f"A round trip took no longer: {_from_to(trip, format_latency)}.", -STRONG)
    if measures.retransmits_per_second.rose(2.0, by=1.0):
        words = _from_to(measures.retransmits_per_second, format_number)
        yield Evidence(f"More had to be sent again: {words} segments a second.", FAIR, shows=True)
    yield from _drive_as_before(measures)


def thermal(measures: Measures) -> Iterator[Evidence]:
    heat = measures.temperature_celsius
    if heat.values is not None:
        before, after = heat.values
        if after >= HOT_CELSIUS and after > before:
            yield Evidence(f"The drive is hot: {_from_to(heat, format_number)} °C.", STRONG, shows=True)
        else:
            yield Evidence(f"The drive is not hot: {format_number(after)} °C.", -STRONG)
    yield from _slower_drive(measures, FAIR)
    if measures.write_amplification.rose(AMPLIFICATION_ROSE, AMPLIFICATION_ROSE_BY):
        yield Evidence("Write amplification rose, which heat does not make.", -FAIR)


def cpu_steal(measures: Measures) -> Iterator[Evidence]:
    steal = measures.cpu_steal_ratio
    if steal.rose(1.5, by=STEAL_RATIO):
        words = _from_to(steal, _percent)
        yield Evidence(f"The hypervisor gave processor time to others: {words} of it.", STRONG, shows=True)
    elif steal.is_known:
        yield Evidence("No processor time was stolen.", -STRONG)
    yield from _drive_as_before(measures)


def _share_of_others(measures: Measures) -> tuple[str, Change, float] | None:
    """Others' larger share in the drive's bytes or requests after the onset: in words, as a change, as a ratio."""
    kinds: tuple[tuple[Change, tuple[Change, ...], Callable[[float], str]], ...] = (
        (
            measures.other_bytes_per_second,
            (measures.device_written_bytes_per_second, measures.device_read_bytes_per_second),
            _rate,
        ),
        (
            measures.other_operations_per_second,
            (measures.device_operations_per_second,),
            lambda value: f"{format_number(value)} requests/s",
        ),
    )
    found = []
    for other, totals, words in kinds:
        total = sum(change.after or 0.0 for change in totals)
        if other.values is not None and total > 0:
            found.append((_from_to(other, words), other, other.values[1] / total))
    return max(found, key=lambda item: item[2], default=None)


def _others_took_over(measures: Measures) -> bool:
    found = _share_of_others(measures)
    return found is not None and found[1].rose(1.5) and found[2] >= NEIGHBOUR_SHARE


def neighbour(measures: Measures) -> Iterator[Evidence]:
    found = _share_of_others(measures)
    if found is not None:
        words, _, share = found
        if _others_took_over(measures):
            sentence = f"Others than the run used its drive: {words}, {_percent(min(1.0, share))} of all that it did."
            yield Evidence(sentence, STRONG, shows=True)
        else:
            yield Evidence(f"Nobody else began to use the drive: {words}.", -STRONG)
    yield from _slower_drive(measures, FAIR)
    if measures.queue_depth.rose(1.5, by=0.5):
        yield Evidence(f"More requests waited at the drive: {_from_to(measures.queue_depth, format_number)}.", WEAK)


def heavier_load(measures: Measures) -> Iterator[Evidence]:
    operations = measures.operations_per_second
    if operations.rose(LOAD_ROSE, by=1.0):
        yield Evidence(
            f"The run's own load rose: {_from_to(operations, format_number)} operations/s.", STRONG, shows=True
        )
    elif operations.is_known:
        yield Evidence(f"The run's own load did not rise: {_from_to(operations, format_number)} operations/s.", -STRONG)


def _near(measures: Measures, words: tuple[str, ...]) -> list[Happening]:
    """The nearest thing of such a name that came before the onset or just as it was seen; none or one."""
    found = [
        happening
        for happening in measures.happenings
        if -HAPPENING_REACH_SECONDS <= happening.seconds <= HAPPENING_REACH_SECONDS / 4
        and any(word in happening.name for word in words)
    ]
    return sorted(found, key=lambda happening: abs(happening.seconds))[:1]


def _when(seconds: float) -> str:
    return f"{abs(seconds):.0f} s {'before' if seconds <= 0 else 'after'} the onset"
