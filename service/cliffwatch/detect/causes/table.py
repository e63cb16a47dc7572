"""The table of causes: `CAUSES`. docs/causes.md holds the same for people."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from cliffwatch.detect.causes import weigh
from cliffwatch.detect.causes.measures import Measures
from cliffwatch.detect.causes.weigh import Evidence
from cliffwatch.detect.layers import Layer

_ABOVE = frozenset({Layer.SCHEDULE, Layer.ABOVE_BLOCK_LAYER})
_DRIVE = frozenset({Layer.QUEUE, Layer.DEVICE})
_ANY = frozenset(Layer)


class Cause(StrEnum):
    """Why latency rose."""

    GARBAGE_COLLECTION = "drive_garbage_collection"
    RETENTION = "retention_limit_reached"
    PAGE_CACHE = "page_cache"
    CLIENT = "client"
    BROKER = "broker"
    NETWORK = "network"
    THERMAL = "thermal_throttling"
    CPU_STEAL = "cpu_steal"
    NEIGHBOUR = "neighbour"
    HEAVIER_LOAD = "heavier_load"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CauseRow:
    """`title` is what it is called in a sentence, `remedy` what tells it from others or takes it away when tried.

    `needs` names what has to be measured to show it, `watched_by` the changes of `Measures` that hold that. `layers`
    are those that it slows down first: where another one did, it is not the cause.
    """

    cause: Cause
    title: str
    remedy: str
    needs: str
    watched_by: tuple[str, ...]
    layers: frozenset[Layer]
    weigh: Callable[[Measures], Iterable[Evidence]]

    def is_watched(self, measures: Measures) -> bool:
        return any(getattr(measures, name).is_known for name in self.watched_by)


#: In the order in which equals are named.
CAUSES: tuple[CauseRow, ...] = (
    CauseRow(
        Cause.GARBAGE_COLLECTION,
        "drive garbage collection",
        "trim the drive, or leave a tenth of it unpartitioned, and run again: garbage collection comes later or not",
        "the drive's media bytes and clean blocks",
        ("write_amplification", "free_blocks_ratio"),
        _DRIVE,
        weigh.garbage_collection,
    ),
    CauseRow(
        Cause.RETENTION,
        "the retention limit was reached",
        "run with another retention: the onset moves with it",
        "deletions and what is stored",
        ("deletions_per_second", "stored_growth_bytes_per_second"),
        _ANY,
        weigh.retention,
    ),
    CauseRow(
        Cause.PAGE_CACHE,
        "the page cache was full",
        "write with direct I/O, or sync: it goes away, and what is left is the drive's own latency",
        "the bytes of the engine and of the drive",
        ("engine_written_bytes_per_second", "dirty_bytes"),
        _ANY,
        weigh.page_cache,
    ),
    CauseRow(
        Cause.CLIENT,
        "the client itself",
        "give the engine more processor time: it goes away",
        "the engine's processor time",
        ("engine_cpu_throttled_ratio", "cpu_pressure_ratio", "schedule_debt_seconds"),
        _ABOVE,
        weigh.client,
    ),
    CauseRow(
        Cause.BROKER,
        "the broker",
        "read the broker's log of that minute; with its own metrics in `scrape`, the report sees inside it",
        "the broker's leaders, connections, queue and pauses",
        ("leader_changes_per_second", "disconnects_per_second", "broker_queue_requests", "broker_pause_ratio"),
        _ABOVE,
        weigh.broker,
    ),
    CauseRow(
        Cause.NETWORK,
        "the network",
        "measure the round trip while it lasts: it is longer than before",
        "the round-trip time",
        ("round_trip_seconds", "retransmits_per_second"),
        _ABOVE,
        weigh.network,
    ),
    CauseRow(
        Cause.THERMAL,
        "thermal throttling of the drive",
        "cool the drive and run again: it goes away",
        "the drive's temperature",
        ("temperature_celsius",),
        _DRIVE,
        weigh.thermal,
    ),
    CauseRow(
        Cause.CPU_STEAL,
        "processor time stolen by other virtual machines",
        "run on a machine of its own: it goes away",
        "stolen processor time",
        ("cpu_steal_ratio",),
        _ABOVE,
        weigh.cpu_steal,
    ),
    CauseRow(
        Cause.NEIGHBOUR,
        "a neighbour that uses the same drive",
        "stop whatever else uses the drive (`iotop` names it): it goes away",
        "what others do on the drive",
        ("other_bytes_per_second", "other_operations_per_second"),
        _DRIVE,
        weigh.neighbour,
    ),
    CauseRow(
        Cause.HEAVIER_LOAD,
        "a heavier load",
        "hold the rate: it goes away",
        "the run's own rate",
        ("operations_per_second",),
        _ANY,
        weigh.heavier_load,
    ),
)
