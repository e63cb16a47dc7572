"""The evidence for and against each cause, as functions of the measures.

Evidence that `shows` its cause is found only where this cause is at work; a cause without such evidence is never named,
however well the rest fits. Evidence that several causes have in common, such as a slow drive, only supports them.
Weights: 3 strong, 2 fair, 1 weak; evidence with a weight below zero contradicts the cause.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cliffwatch.analysis.causes.measures import Change, Measures, NearbyEvent
from cliffwatch.analysis.causes.thresholds import (
    ABSORBED_RATIO,
    AMPLIFICATION_ROSE,
    AMPLIFICATION_ROSE_BY,
    BEHIND_SECONDS,
    BROKER_EVENTS_PER_SECOND,
    BUSY_RATIO,
    CHECKPOINT_ROSE_BY,
    DELETIONS_STARTED,
    DEVICE_ROSE,
    DEVICE_SAME,
    DIRTY_NEAR_LIMIT,
    DOUBLED,
    FREE_BLOCKS_FELL,
    FREE_BLOCKS_FELL_BY,
    FREE_BLOCKS_REMAIN,
    GROWTH_BYTES,
    GROWTH_STOPPED,
    HELD_BACK_RATIO,
    HOT_CELSIUS,
    LIMIT_EXCEEDED,
    MORE_THAN_BEFORE,
    NEARBY_EVENT_SECONDS,
    NEARBY_EVENT_SECONDS_AFTER,
    NEIGHBOUR_SHARE,
    NOT_ABSORBED_RATIO,
    QUEUE_GREW_BY,
    ROUND_TRIP_SECONDS,
    STEAL_RATIO,
    TRIM_BYTES,
    WAITING_RATIO,
    WITHIN_LIMIT,
    WRITEBACK_BYTES,
)
from cliffwatch.analysis.journal_series import LEADER_EVENTS
from cliffwatch.analysis.thresholds import LOAD_ROSE
from cliffwatch.base.units import (
    format_amplification,
    format_byte_rate,
    format_latency,
    format_number,
    format_rate,
    format_share,
    format_size,
)

STRONG, FAIR, WEAK = 3.0, 2.0, 1.0

#: Time of a request as the kernel counts it: from its arrival at the block layer until its completion.
_WRITE_LATENCY = "write latency at the block layer (queue and device)"
#: Events of an engine's restart: its death, and the gap until another engine measured.
RESTART_EVENTS = ("engine_died", "engine_restarted")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sentence of evidence, with its numbers and its weight. `shows`: found only where this cause is at work."""

    sentence: str
    weight: float
    shows: bool = False


def _from_to(change: Change, words: Callable[[float], str]) -> str:
    assert change.values is not None, "called only for what was measured"
    before, after = map(words, change.values)
    return f"from {before} to {after}" if before != after else f"{before} before and after"


def _over(span: str) -> str:
    return f" {span}" if span else ""


def _device_rose(measures: Measures) -> bool:
    return measures.device_write_latency_seconds.rose(DEVICE_ROSE)


def _device_same(measures: Measures) -> bool:
    change = measures.device_write_latency_seconds
    return change.is_known and not change.rose(DEVICE_SAME)


def _slower_drive(measures: Measures, weight: float) -> Iterator[Evidence]:
    """Evidence for causes in the drive or on it: a slower drive supports them, an unchanged one contradicts them."""
    change = measures.device_write_latency_seconds
    if _device_rose(measures):
        yield Evidence(f"The {_WRITE_LATENCY} rose {_from_to(change, format_latency)}.", weight)
    elif _device_same(measures):
        yield Evidence(f"The {_WRITE_LATENCY} did not rise: {_from_to(change, format_latency)}.", -STRONG)


def _drive_as_before(measures: Measures) -> Iterator[Evidence]:
    """Evidence for causes above the drive: an unchanged drive supports them, a slower one contradicts them."""
    change = measures.device_write_latency_seconds
    if _device_same(measures):
        yield Evidence(f"The {_WRITE_LATENCY} did not rise: {_from_to(change, format_latency)}.", FAIR)
    elif _device_rose(measures):
        yield Evidence(f"The {_WRITE_LATENCY} rose {_from_to(change, format_latency)}.", -FAIR)


def garbage_collection(measures: Measures) -> Iterator[Evidence]:
    amplification = measures.write_amplification
    if amplification.rose(AMPLIFICATION_ROSE, AMPLIFICATION_ROSE_BY):
        before, after = (format_amplification(each) for each in amplification.values or ())
        words = f"from {before}{_over(measures.span_before)} to {after}{_over(measures.span_after)}"
        yield Evidence(f"Write amplification rose {words}.", STRONG, shows=True)
    elif amplification.values is not None:
        present = f"{format_amplification(amplification.values[1])}{_over(measures.span_after)}"
        yield Evidence(f"Write amplification did not rise: it is {present}.", -STRONG)
    clean = measures.free_blocks_ratio
    if clean.fell(FREE_BLOCKS_FELL, by=FREE_BLOCKS_FELL_BY):
        yield Evidence(f"Free blocks fell {_from_to(clean, format_share)}.", FAIR, shows=True)
    elif clean.values is not None and clean.values[1] > FREE_BLOCKS_REMAIN:
        yield Evidence(f"Free blocks remain: {format_share(clean.values[1])}.", -FAIR)
    yield from _slower_drive(measures, FAIR)
    given = measures.device_written_bytes_per_second
    if given.rose(LOAD_ROSE):
        yield Evidence(f"The write load on the drive increased: {_from_to(given, format_byte_rate)}.", -FAIR)
    elif given.is_known:
        yield Evidence(f"The write load on the drive did not increase: {_from_to(given, format_byte_rate)}.", WEAK)
    if measures.device_lead_seconds is not None and measures.device_lead_seconds > 0 and _device_rose(measures):
        seconds = f"{format_number(measures.device_lead_seconds)} s"
        yield Evidence(f"The {_WRITE_LATENCY} rose {seconds} before the client's.", WEAK)
    if _others_took_over(measures):
        yield Evidence("Other processes started using the drive.", -STRONG)
    if _over_its_limit(measures):
        yield Evidence(f"The volume was asked for more than {measures.exceeded_limit} allows.", -STRONG)


def retention(measures: Measures) -> Iterator[Evidence]:
    deletions = measures.deletions_per_second
    if deletions.values is not None:
        before, after = deletions.values
        if after > 0 and before <= DELETIONS_STARTED * after:
            yield Evidence(f"Deletions started: {_from_to(deletions, format_rate)}.", STRONG, shows=True)
        elif after <= before * DEVICE_SAME:
            yield Evidence("No deletions started at the onset.", -STRONG)
    growth = measures.stored_growth_bytes_per_second
    if growth.fell(GROWTH_STOPPED, by=GROWTH_BYTES):
        yield Evidence(
            f"The amount of stored data stopped growing: {_from_to(growth, format_byte_rate)}.", FAIR, shows=True
        )
    elif growth.values is not None and growth.values[1] > 0:
        yield Evidence(f"The amount of stored data kept growing, by {format_byte_rate(growth.values[1])}.", -FAIR)
    if measures.discarded_bytes_per_second.rose(DOUBLED, by=TRIM_BYTES):
        words = _from_to(measures.discarded_bytes_per_second, format_byte_rate)
        yield Evidence(f"The drive received more TRIM: {words}.", WEAK)


def _absorbed(measures: Measures) -> Change:
    """Share of the engine's written bytes that did not reach the drive in the same span, before and after the onset."""

    def share(engine: float | None, device: float | None) -> float | None:
        return None if not engine or device is None else max(0.0, 1.0 - device / engine)

    engine, device = measures.engine_written_bytes_per_second, measures.device_written_bytes_per_second
    return Change(share(engine.before, device.before), share(engine.after, device.after))


def page_cache(measures: Measures) -> Iterator[Evidence]:
    absorbed = _absorbed(measures)
    if absorbed.values is not None:
        before, after = absorbed.values
        if before >= ABSORBED_RATIO and after < before / 2:
            words = f"{format_share(before)} of writes stayed in memory before, {format_share(after)} after"
            yield Evidence(f"{words}: the page cache was full, and writers waited for the drive.", STRONG, True)
        elif max(before, after) < NOT_ABSORBED_RATIO:
            yield Evidence("Writes reached the drive before and after; the page cache did not absorb them.", -STRONG)
    dirty, limit = measures.dirty_bytes, measures.dirty_limit_bytes
    if limit and dirty.after is not None and dirty.after >= limit * DIRTY_NEAR_LIMIT:
        held = f"{format_size(dirty.after)} of dirty pages, {format_share(dirty.after / limit)} of the limit"
        near_before = dirty.before is not None and dirty.before >= limit * DIRTY_NEAR_LIMIT
        yield Evidence(
            f"The page cache has {held} at which writers are throttled.", WEAK if near_before else FAIR, not near_before
        )
    if measures.writeback_bytes.rose(DOUBLED, by=WRITEBACK_BYTES):
        yield Evidence(f"Write-back increased: {_from_to(measures.writeback_bytes, format_size)}.", WEAK)


def client(measures: Measures) -> Iterator[Evidence]:
    throttled = measures.engine_cpu_throttled_ratio
    if throttled.rose(MORE_THAN_BEFORE, by=HELD_BACK_RATIO):
        words = _from_to(throttled, format_share)
        yield Evidence(f"The engine was throttled by its CPU limit, {words} of the time.", STRONG, shows=True)
    elif throttled.is_known:
        yield Evidence("No CPU limit throttled the engine.", -WEAK)
    waiting = measures.engine_cpu_waiting_ratio
    if waiting.rose(MORE_THAN_BEFORE, by=WAITING_RATIO):
        words = _from_to(waiting, format_number)
        yield Evidence(f"The engine's threads waited for a CPU: {words} threads at a time.", FAIR, shows=True)
    pressure, busy = measures.cpu_pressure_ratio, measures.cpu_busy_ratio
    if pressure.rose(MORE_THAN_BEFORE, by=WAITING_RATIO) and busy.after is not None and busy.after >= BUSY_RATIO:
        words = f"tasks waited for a CPU {_from_to(pressure, format_share)} of the time"
        yield Evidence(f"The machine's CPUs are {format_share(busy.after)} busy, and {words}.", FAIR, shows=True)
    debt, service = measures.schedule_debt_seconds, measures.service_latency_seconds
    if debt.rose(DOUBLED, by=BEHIND_SECONDS) and service.is_known and not service.rose(DEVICE_SAME):
        words = _from_to(debt, format_latency)
        yield Evidence(f"The engine fell behind its schedule, {words}, though its requests took no longer.", FAIR, True)
    for nearby in _near(measures, RESTART_EVENTS):
        yield Evidence(f"The engine was restarted {_when(nearby.seconds)}.", STRONG, shows=True)
    if not measures.cpu_steal_ratio.rose(MORE_THAN_BEFORE, by=STEAL_RATIO):
        yield from _drive_as_before(measures)


def broker(measures: Measures) -> Iterator[Evidence]:
    for nearby in _near(measures, LEADER_EVENTS):
        name = nearby.name.replace("_", " ")
        yield Evidence(f"Event '{name}' occurred {_when(nearby.seconds)}.", STRONG, shows=True)
    for change, words in (
        (measures.leader_changes_per_second, "Partition leaders changed"),
        (measures.disconnects_per_second, "Connections to the broker were lost"),
    ):
        if change.rose(DOUBLED, by=BROKER_EVENTS_PER_SECOND):
            yield Evidence(f"{words}: {_from_to(change, format_rate)}.", STRONG, shows=True)
    yield from _drive_as_before(measures)


def network(measures: Measures) -> Iterator[Evidence]:
    trip = measures.round_trip_seconds
    if trip.rose(MORE_THAN_BEFORE, by=ROUND_TRIP_SECONDS):
        yield Evidence(f"The network round-trip time rose: {_from_to(trip, format_latency)}.", STRONG, shows=True)
    elif trip.is_known:
        yield Evidence(f"The network round-trip time did not rise: {_from_to(trip, format_latency)}.", -STRONG)
    yield from _drive_as_before(measures)


def _over_its_limit(measures: Measures) -> bool:
    """Whether a cloud volume exceeded its limit for much more of the time than before the onset."""
    return measures.limit_exceeded_ratio.rose(LOAD_ROSE, by=LIMIT_EXCEEDED)


def volume_limit(measures: Measures) -> Iterator[Evidence]:
    exceeded = measures.limit_exceeded_ratio
    if exceeded.values is not None:
        before, after = (format_share(each) for each in exceeded.values)
        if _over_its_limit(measures):
            words = f"for {after} of the time, before for {before}"
            yield Evidence(f"More was asked for than {measures.exceeded_limit} allows, {words}.", STRONG, shows=True)
        elif exceeded.values[1] < WITHIN_LIMIT:
            yield Evidence(f"The volume was within its limits: over one for {after} of the time.", -STRONG)
        else:
            words = f"for {before} of the time, then for {after}"
            yield Evidence(f"The volume was over a limit as much before: {words}.", -FAIR)
    yield from _slower_drive(measures, FAIR)
    if measures.write_amplification.rose(AMPLIFICATION_ROSE, AMPLIFICATION_ROSE_BY):
        yield Evidence("Write amplification rose, which a limit does not cause.", -FAIR)


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
        yield Evidence("Write amplification rose, which heat does not cause.", -FAIR)


def cpu_steal(measures: Measures) -> Iterator[Evidence]:
    steal = measures.cpu_steal_ratio
    if steal.rose(MORE_THAN_BEFORE, by=STEAL_RATIO):
        words = _from_to(steal, format_share)
        yield Evidence(f"The hypervisor gave CPU time to other guests (steal): {words}.", STRONG, shows=True)
    elif steal.is_known:
        yield Evidence("No CPU time was stolen.", -STRONG)
    yield from _drive_as_before(measures)


def _share_of_others(measures: Measures) -> tuple[str, Change, float] | None:
    """Other processes' use of the drive, by bytes or by requests, whichever is the larger share: the change of their
    rate in words, that change, and their share after the onset. None where neither is known."""
    kinds: tuple[tuple[Change, tuple[Change, ...], Callable[[float], str]], ...] = (
        (
            measures.other_bytes_per_second,
            (measures.device_written_bytes_per_second, measures.device_read_bytes_per_second),
            format_byte_rate,
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
    return found is not None and found[1].rose(MORE_THAN_BEFORE) and found[2] >= NEIGHBOUR_SHARE


def neighbour(measures: Measures) -> Iterator[Evidence]:
    found = _share_of_others(measures)
    if found is not None:
        words, _, share = found
        if _others_took_over(measures):
            sentence = f"Other processes used the drive: {words}, {format_share(min(1.0, share))} of its traffic."
            yield Evidence(sentence, STRONG, shows=True)
        else:
            yield Evidence(f"No other process started using the drive: {words}.", -STRONG)
    yield from _slower_drive(measures, FAIR)
    if measures.queue_depth.rose(MORE_THAN_BEFORE, by=QUEUE_GREW_BY):
        yield Evidence(f"The drive's queue grew: {_from_to(measures.queue_depth, format_number)}.", WEAK)


def checkpoint(measures: Measures) -> Iterator[Evidence]:
    written = measures.checkpoint_ratio
    if written.rose(MORE_THAN_BEFORE, by=CHECKPOINT_ROSE_BY):
        words = _from_to(written, format_share)
        yield Evidence(f"The database wrote a checkpoint more of the time: {words}.", STRONG, shows=True)
    elif written.is_known:
        words = _from_to(written, format_share)
        yield Evidence(f"The database wrote checkpoints for about as much of the time: {words}.", -STRONG)
    if measures.write_amplification.rose(AMPLIFICATION_ROSE, AMPLIFICATION_ROSE_BY):
        yield Evidence("Write amplification rose, which a checkpoint does not cause.", -FAIR)


def heavier_load(measures: Measures) -> Iterator[Evidence]:
    operations = measures.operations_per_second
    if operations.rose(LOAD_ROSE, by=1.0):
        yield Evidence(f"The run's own operation rate rose: {_from_to(operations, format_rate)}.", STRONG, shows=True)
    elif operations.is_known:
        yield Evidence(f"The run's own operation rate did not rise: {_from_to(operations, format_rate)}.", -STRONG)


def _near(measures: Measures, names: tuple[str, ...]) -> list[NearbyEvent]:
    """List of the one event, with a name in `names`, that is nearest to the onset; empty if none is close to it."""
    found = [
        nearby
        for nearby in measures.nearby_events
        if -NEARBY_EVENT_SECONDS <= nearby.seconds <= NEARBY_EVENT_SECONDS_AFTER and nearby.name in names
    ]
    return sorted(found, key=lambda nearby: abs(nearby.seconds))[:1]


def _when(seconds: float) -> str:
    return f"{format_number(abs(seconds))} s {'before' if seconds <= 0 else 'after'} the onset"
