"""Measured quantities before and after an onset, from which causes are distinguished.

A quantity that was not measured is None, which is neither evidence for a cause nor against one.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Change:
    """Values of a quantity before and after an onset, in the unit that ends its name in `Measures`; None if not
    measured."""

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
        """Whether the quantity is known to have risen above `factor` times its value before, by more than `by`."""
        if self.values is None:
            return False
        before, after = self.values
        return after > before * factor and after - before > by

    def fell(self, factor: float, by: float = 0.0) -> bool:
        """Whether the quantity is known to have fallen below `factor` (below 1) of its value before, by more than
        `by`."""
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
    """Measured quantities before and after one onset. Rates are per second; ratios of time are seconds per second.

    The client: operations and bytes that the engine moved; the mean latency, from when it began, of the operation that
    the finding is about; how far the engine is behind its own schedule; how much of the time its processes waited for a
    processor, and were throttled by a limit of their control group.

    The machine: share of its processors' time that was used, of time in which some task waited for a processor, and of
    time stolen by the hypervisor; dirty pages, pages under write-back, and the limit of dirty pages at which writers
    are throttled.

    The drive: mean latency of its writes, block-layer queue included; its requests and bytes from all processes; those
    from processes other than the run's; write amplification (media bytes / host bytes); free blocks as a share;
    temperature; share of the time in which a cloud's volume was over the limit that `exceeded_limit` names, the one
    that it exceeded for longest. `device_lead_seconds` is how long before the client's latency the latency of the
    drive's writes rose.

    The store: segments deleted, bytes discarded (TRIM), and the growth of stored bytes.

    A database: share of the time in which it wrote a checkpoint; of spikes, before is the share of all time, and after
    that of the time of the spikes.

    A broker and the network: partitions that changed their leader, connections that broke, and round-trip time.

    `span_before` and `span_after` are the measured times in words, as in `over 30s before the onset`.
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

    checkpoint_ratio: Change = UNKNOWN_CHANGE

    leader_changes_per_second: Change = UNKNOWN_CHANGE
    disconnects_per_second: Change = UNKNOWN_CHANGE
    round_trip_seconds: Change = UNKNOWN_CHANGE

    nearby_events: tuple[NearbyEvent, ...] = field(default=())
