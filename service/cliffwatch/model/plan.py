"""Plan of a load: what a run would write, before it writes."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """A file (created, `size_bytes` long at most) or a device (overwritten) that a run would write to."""

    path: Path
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Plan of a load: what it would write, and the engine's command.

    `written_bytes` is an estimate of all that the run writes over its length; None where nothing bounds the rate.
    `direct` says whether the page cache is bypassed; `notes` are sentences on the measurement for the user.
    """

    writes: tuple[PlannedWrite, ...]
    command: tuple[str, ...]
    direct: bool
    written_bytes: int | None = None
    notes: tuple[str, ...] = ()
