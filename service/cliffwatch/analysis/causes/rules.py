"""Table of causes: `CAUSES`. docs/causes.md describes the same table."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from cliffwatch.analysis.causes import evidence
from cliffwatch.analysis.causes.evidence import Evidence
from cliffwatch.analysis.causes.measures import Measures
from cliffwatch.analysis.layers import Layer

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
    VOLUME_LIMIT = "volume_limit"
    THERMAL = "thermal_throttling"
    CPU_STEAL = "cpu_steal"
    NEIGHBOUR = "neighbour"
    CHECKPOINT = "checkpoint"
    HEAVIER_LOAD = "heavier_load"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CauseRow:
    """Row of the table of causes. `title` is the cause's name in a sentence, `remedy` a test that distinguishes the
    cause from others, or removes the cause.

    `needs` describes the measurements that show the cause, empty where any load that can have the cause brings them;
    `watched_by` names their fields in `Measures`. `layers` are
    those that the cause slows down first: where another layer slowed down first, the cause is ruled out.
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


#: In the order in which causes of equal score are named.
CAUSES: tuple[CauseRow, ...] = (
    CauseRow(
        Cause.GARBAGE_COLLECTION,
        "drive garbage collection",
        "trim the drive, or leave a tenth of it unpartitioned, and run again: if that is the cause, the cliff comes "
        "later or never",
        "the drive's NAND bytes and free blocks",
        ("write_amplification", "free_blocks_ratio"),
        _DRIVE,
        evidence.garbage_collection,
    ),
    CauseRow(
        Cause.RETENTION,
        "retention limit reached",
        "run with another retention: the onset moves with it",
        "deletions and what is stored",
        ("deletions_per_second", "stored_growth_bytes_per_second"),
        _ANY,
        evidence.retention,
    ),
    CauseRow(
        Cause.PAGE_CACHE,
        "page cache full",
        "write with direct I/O, or sync: the rise disappears, and the drive's own latency remains",
        "the bytes of the engine and of the drive",
        ("engine_written_bytes_per_second", "dirty_bytes"),
        _ANY,
        evidence.page_cache,
    ),
    CauseRow(
        Cause.CLIENT,
        "the client itself",
        "give the engine more CPU: the rise disappears",
        "the engine's CPU time",
        ("engine_cpu_throttled_ratio", "cpu_pressure_ratio", "schedule_debt_seconds"),
        _ABOVE,
        evidence.client,
    ),
    CauseRow(
        Cause.BROKER,
        "the broker",
        "read the broker's log of that minute, and its queues and pauses in its own metrics (`scrape` in the workload)",
        "the broker's leaders and connections",
        ("leader_changes_per_second", "disconnects_per_second"),
        _ABOVE,
        evidence.broker,
    ),
    CauseRow(
        Cause.NETWORK,
        "the network",
        "measure the round trip while it lasts: it is longer than before",
        "the round-trip time",
        ("round_trip_seconds",),
        _ABOVE,
        evidence.network,
    ),
    CauseRow(
        Cause.VOLUME_LIMIT,
        "the volume's limit",
        "give the volume more IOPS or throughput, or take a larger instance, and run again: the rise disappears",
        "the time that the volume was over its limits",
        ("limit_exceeded_ratio",),
        _DRIVE,
        evidence.volume_limit,
    ),
    CauseRow(
        Cause.THERMAL,
        "thermal throttling of the drive",
        "cool the drive and run again: the rise disappears",
        "the drive's temperature",
        ("temperature_celsius",),
        _DRIVE,
        evidence.thermal,
    ),
    CauseRow(
        Cause.CPU_STEAL,
        "CPU steal by other virtual machines",
        "run on a dedicated machine: the rise disappears",
        "CPU steal",
        ("cpu_steal_ratio",),
        _ABOVE,
        evidence.cpu_steal,
    ),
    CauseRow(
        Cause.NEIGHBOUR,
        "another process on the same drive",
        "stop whatever else uses the drive (`iotop` names it): the rise disappears",
        "other processes' drive traffic",
        ("other_bytes_per_second", "other_operations_per_second"),
        _DRIVE,
        evidence.neighbour,
    ),
    CauseRow(
        Cause.CHECKPOINT,
        "a checkpoint of the database",
        "run with twice the checkpoint_timeout and max_wal_size: what a checkpoint causes comes half as often",
        "",
        ("checkpoint_ratio",),
        _ANY,
        evidence.checkpoint,
    ),
    CauseRow(
        Cause.HEAVIER_LOAD,
        "a heavier load",
        "hold the rate: the rise disappears",
        "the run's own rate",
        ("operations_per_second",),
        _ANY,
        evidence.heavier_load,
    ),
)
