"""Measured quantities before and after an onset, from which causes are distinguished.

A quantity that was not measured is None, which is neither evidence for a cause nor against one.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Change:
    """A quantity before and after, in the unit that its name in `Measures` ends in; None where it was not measured."""

    before: float | None = None
    after: float | None = None

    @property
    def values(self) -> tuple[float, float] | None:
        """Both values, or None unless both were measured."""
        return None if self.before is None or self.after is None else (self.before, self.after)

    @property
    def is_known(self) -> bool:
        return self.values is not None

    def rose(self, factor: float, by: float = 0.0) -> bool:
        """Whether it is known to have grown to more than `factor` times what it was, and by more than `by`."""
        if self.values is None:
            return False
        before, after = self.values
        return after > before * factor and after - before > by

    def fell(self, factor: float, by: float = 0.0) -> bool:
        """Whether it is known to have shrunk to less than `factor` (below 1) of what it was, and by more than `by`."""
        if self.values is None:
            return False
        before, after = self.values
        return after < before * factor and before - after > by


UNKNOWN_CHANGE = Change()


@dataclass(frozen=True, slots=True)
class NearbyEvent:
    """An event of the journal or the engine: `seconds` after the onset, negative before it."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Everything known around one onset. Rates are per second; ratios of time are seconds per second.

    The client: operations and bytes that the engine moved; the mean latency of the operation that is spoken of, from
    when it began; how far the engine is behind its own schedule; how much of the time its processes waited for a
    processor, and were held back by a limit of their control group.

    The machine: share of its processors' time that was used, of time in which some task waited for one, and of time
    stolen by the hypervisor; dirty pages, those under write-back, and the limit at which
    writers are held up.

    The drive: mean time of its writes, block-layer queue included; what it was given by everybody; what
    others than the run gave it; write amplification (media bytes / host bytes); free blocks as a share; temperature;
    share of the time in which more was asked of a cloud's volume than `exceeded_limit` allows, the one of its limits
    that this was most of.
    `device_lead_seconds` is by how much the drive's writes slowed down before the client's latency rose.

    The store: segments deleted, bytes discarded (TRIM), and how fast what is stored grows.

    A broker and the network: partitions that changed their leader, connections that broke, and round-trip time.

    `span_before` and `span_after` say over which time all of this was measured, as in `over 30s before the onset`.
    """

    span_before: str = ""
    span_after: str = ""

    operations_per_second: Change = UNKNOWN_CHANGE
    engine_written_bytes_per_second: Change = UNKNOWN_CHANGE
    service_latency_seconds: Change = UNKNOWN_CHANGE
    schedule_debt_seconds: Change = UNKNOWN_CHANGE
    engine_cpu_waiting_ratio: Change = UNKNOWN_CHANGE
    engine_cpu_throttled_ratio: Change = UNKNOWN_CHANGE

    cpu_busy_ratio: Change = UNKNOWN_CHANGE
    cpu_pressure_ratio: Change = UNKNOWN_CHANGE
    cpu_steal_ratio: Change = UNKNOWN_CHANGE
    dirty_bytes: Change = UNKNOWN_CHANGE
    writeback_bytes: Change = UNKNOWN_CHANGE
    dirty_limit_bytes: float | None = None

    device_write_latency_seconds: Change = UNKNOWN_CHANGE
    device_operations_per_second: Change = UNKNOWN_CHANGE
    device_written_bytes_per_second: Change = UNKNOWN_CHANGE
    device_read_bytes_per_second: Change = UNKNOWN_CHANGE
    other_bytes_per_second: Change = UNKNOWN_CHANGE
    other_operations_per_second: Change = UNKNOWN_CHANGE
    queue_depth: Change = UNKNOWN_CHANGE
    write_amplification: Change = UNKNOWN_CHANGE
    free_blocks_ratio: Change = UNKNOWN_CHANGE
    temperature_celsius: Change = UNKNOWN_CHANGE
    limit_exceeded_ratio: Change = UNKNOWN_CHANGE
    exceeded_limit: str = ""
    device_lead_seconds: float | None = None

    deletions_per_second: Change = UNKNOWN_CHANGE
    discarded_bytes_per_second: Change = UNKNOWN_CHANGE
    stored_growth_bytes_per_second: Change = UNKNOWN_CHANGE

    leader_changes_per_second: Change = UNKNOWN_CHANGE
    disconnects_per_second: Change = UNKNOWN_CHANGE
    round_trip_seconds: Change = UNKNOWN_CHANGE

    nearby_events: tuple[NearbyEvent, ...] = field(default=())
