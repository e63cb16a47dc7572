"""Styles: how a broker writes, as a set of parameters; with the styles of three brokers.

docs/engines/storage.md lists for each value the broker's setting, and where that is documented.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from cliffwatch.base.units import Duration, Size
from cliffwatch.model.document import Strict

_KIBIBYTE = 1024
_MEBIBYTE = 1024**2
_GIBIBYTE = 1024**3


@dataclass(frozen=True, slots=True)
class Style:
    """Parameters of one style; sizes in bytes, times in seconds. docs/engines/storage.md says what each means."""

    layout: Literal["partitioned", "shared"]
    direct: bool
    chunk_size: int
    preallocation: int
    acknowledge: Literal["written", "synced"]
    coalesce: bool
    sync_on_roll: bool
    snapshot_size: int
    start_checkpoint: bool
    offset_checkpoint_interval: float
    background_threads: int
    segment_size: int
    segment_jitter: float
    index_interval: int
    threads: int
    io: Literal["io_uring", "threads", "inline"]
    journal: bool = False
    journal_direct: bool = False
    journal_segment_size: int = 0
    journal_preallocation: int = 0
    journal_group_wait: float = 0.0
    journal_group_size: int = 0
    checkpoint_interval: float = 10.0


class StyleChanges(Strict):
    """Parameters that replace those of one of the three styles, which makes a fourth style."""

    layout: Literal["partitioned", "shared"] | None = None
    direct: bool | None = None
    chunk_size: Annotated[Size, Field(ge=512, le=16 * _MEBIBYTE)] | None = None
    preallocation: Annotated[Size, Field(ge=0, le=_GIBIBYTE)] | None = None
    acknowledge: Literal["written", "synced"] | None = None
    coalesce: bool | None = None
    sync_on_roll: bool | None = None
    snapshot_size: Annotated[Size, Field(ge=0, le=_MEBIBYTE)] | None = None
    start_checkpoint: bool | None = None
    offset_checkpoint_interval: Annotated[Duration, Field(ge=0, le=3600)] | None = None
    background_threads: Annotated[int, Field(ge=1, le=64)] | None = None
    segment_size: Annotated[Size, Field(ge=16 * _KIBIBYTE, le=1024 * _GIBIBYTE)] | None = None
    segment_jitter: Annotated[float, Field(ge=0, le=0.5)] | None = None
    index_interval: Annotated[Size, Field(ge=0, le=_GIBIBYTE)] | None = None
    threads: Annotated[int, Field(ge=1, le=64)] | None = None
    io: Literal["io_uring", "threads", "inline"] | None = None
    journal: bool | None = None
    journal_direct: bool | None = None
    journal_segment_size: Annotated[Size, Field(ge=16 * _KIBIBYTE, le=1024 * _GIBIBYTE)] | None = None
    journal_preallocation: Annotated[Size, Field(ge=0, le=_GIBIBYTE)] | None = None
    journal_group_wait: Annotated[Duration, Field(ge=0, le=10)] | None = None
    journal_group_size: Annotated[Size, Field(ge=1, le=_GIBIBYTE)] | None = None
    checkpoint_interval: Annotated[Duration, Field(ge=0.1, le=3600)] | None = None

    def over(self, style: Style) -> Style:
        """Copy of `style`, with the parameters that are set here overridden."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return replace(style, **{name: value for name, value in given.items() if value is not None})


STYLES: dict[str, Style] = {
    "kafka": Style(
        layout="partitioned",
        direct=False,
        chunk_size=_MEBIBYTE,
        preallocation=0,
        acknowledge="written",
        coalesce=False,
        sync_on_roll=True,
        snapshot_size=512,
        start_checkpoint=True,
        offset_checkpoint_interval=5.0,
        background_threads=10,
        segment_size=_GIBIBYTE,
        segment_jitter=0.1,
        index_interval=4096,
        threads=8,
        io="inline",
    ),
    "redpanda": Style(
        layout="partitioned",
        direct=True,
        chunk_size=16 * _KIBIBYTE,
        preallocation=32 * _MEBIBYTE,
        acknowledge="synced",
        coalesce=True,
        sync_on_roll=False,
        snapshot_size=0,
        start_checkpoint=False,
        offset_checkpoint_interval=0.0,
        background_threads=1,
        segment_size=128 * _MEBIBYTE,
        segment_jitter=0.05,
        index_interval=0,
        threads=1,
        io="io_uring",
    ),
    "bookkeeper": Style(
        layout="shared",
        direct=False,
        chunk_size=64 * _KIBIBYTE,
        preallocation=0,
        acknowledge="synced",
        coalesce=True,
        sync_on_roll=True,
        snapshot_size=0,
        start_checkpoint=False,
        offset_checkpoint_interval=0.0,
        background_threads=1,
        segment_size=_GIBIBYTE,
        segment_jitter=0.0,
        index_interval=0,
        threads=1,
        io="io_uring",
        journal=True,
        journal_segment_size=2048 * _MEBIBYTE,
        journal_preallocation=16 * _MEBIBYTE,
        journal_group_wait=0.002,
        journal_group_size=512 * _KIBIBYTE,
        checkpoint_interval=10.0,
    ),
}
