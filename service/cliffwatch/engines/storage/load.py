"""The `load` of a workload whose engine is storage: record sizes, rate, retention, readers, and the broker's style."""

from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from cliffwatch.base.units import Duration, Size, format_size
from cliffwatch.engines.storage.style import STYLES, Style, StyleChanges
from cliffwatch.model.document import Strict

_KIBIBYTE = 1024
_MEBIBYTE = 1024**2
_TEBIBYTE = 1024**4
#: Length of the identity and checksum that every record begins with.
RECORD_HEADER_BYTES = 32


class RecordSize(Strict):
    """One size of a distribution; `weight` is relative to the others'."""

    size: Annotated[Size, Field(ge=RECORD_HEADER_BYTES, le=64 * _MEBIBYTE)]
    weight: Annotated[float, Field(gt=0, le=1_000_000)] = 1.0


class RateStep(Strict):
    """Change of the rate: from `after` the load's start on, it is `ratio` times the initial rate; 0 is a pause."""

    after: Annotated[Duration, Field(gt=0)]
    ratio: Annotated[float, Field(ge=0, le=1000)]


class StorageLoad(Strict):
    """Load of the storage engine: records, rate, retention and readers."""

    style: str
    style_changes: StyleChanges = StyleChanges()
    partitions: Annotated[int, Field(ge=1, le=100_000)] = 288
    record_size: Annotated[Size, Field(ge=RECORD_HEADER_BYTES, le=64 * _MEBIBYTE)] | None = None
    record_sizes: tuple[RecordSize, ...] = ()
    payload_randomness: Annotated[float, Field(ge=0, le=1)] = 1.0
    batch_records: Annotated[int, Field(ge=1, le=100_000)] = 16
    producers: Annotated[int, Field(ge=1, le=100_000)] = 1
    rate: Annotated[Size, Field(ge=1, le=_TEBIBYTE)] | None = None
    records_per_second: Annotated[float, Field(gt=0, le=1e9)] | None = None
    rate_steps: tuple[RateStep, ...] = ()
    burst_limit: Annotated[Duration, Field(ge=0, le=86_400)] = 60.0
    retention_size: Annotated[Size, Field(ge=_MEBIBYTE, le=1024 * _TEBIBYTE)] | None = None
    retention_ratio: Annotated[float, Field(gt=0, le=0.95)] | None = None
    fill_ratio: Annotated[float, Field(ge=0, le=1)] = 0.0
    discard_interval: Annotated[Duration, Field(ge=1, le=86_400)] | None = None
    tailing_consumers: Annotated[int, Field(ge=0, le=64)] = 0
    catch_up_rate: Annotated[Size, Field(ge=0, le=_TEBIBYTE)] = 0
    read_size: Annotated[Size, Field(ge=4 * _KIBIBYTE, le=64 * _MEBIBYTE)] = _MEBIBYTE
    verify_size: Annotated[Size, Field(ge=0)] | None = 256 * _MEBIBYTE
    verify_time: Annotated[Duration, Field(gt=0, le=86_400)] = 20.0
    buffer_size: Annotated[Size, Field(ge=64 * _KIBIBYTE, le=16 * 1024 * _MEBIBYTE)] = 16 * _MEBIBYTE
    memory_limit: Annotated[Size, Field(ge=32 * _MEBIBYTE)] = 1024 * _MEBIBYTE
    keep_files: bool = False

    @field_validator("style")
    @classmethod
    def _style_is_known(cls, style: str) -> str:
        if style not in STYLES:
            raise ValueError(
                f"there is no style {style!r}; styles: {', '.join(STYLES)}; `style_changes` modifies one of them"
            )
        return style

    @field_validator("rate_steps")
    @classmethod
    def _steps_follow_each_other(cls, steps: tuple[RateStep, ...]) -> tuple[RateStep, ...]:
        if any(later.after <= earlier.after for earlier, later in pairwise(steps)):
            raise ValueError("each step has to begin after the one before")
        return steps

    @model_validator(mode="after")
    def _is_one_load(self) -> Self:
        if (self.rate is None) == (self.records_per_second is None):
            raise ValueError("give either `rate` (bytes a second) or `records_per_second`")
        if (self.retention_size is None) == (self.retention_ratio is None):
            raise ValueError("give either `retention_size` or `retention_ratio` (a share of the volume)")
        if self.record_size is not None and self.record_sizes:
            raise ValueError("give either `record_size` or `record_sizes`")
        self._check_style()
        return self

    def _check_style(self) -> None:
        style = self.effective_style
        if style.journal and style.layout != "shared":
            raise ValueError("`style_changes.journal` goes with `layout: shared`")
        if style.direct and style.io == "inline":
            raise ValueError("`style_changes.io`: direct files are written with io_uring or threads")
        if style.index_interval and (style.layout == "shared" or style.direct):
            raise ValueError("`style_changes.index_interval`: indexes go with buffered logs, one a partition")
        if style.threads > self.logs:
            raise ValueError(
                f"`style_changes.threads`: at most {self.logs} here, since each thread has logs of its own"
            )
        if self.retention_size is not None and self.retention_size < self.least_retention_bytes:
            raise ValueError(
                f"`retention_size`: {self.segments_phrase} take {format_size(self.least_retention_bytes)}; keep more, "
                "or use smaller segments or fewer partitions"
            )
        if self.batch_bytes > style.segment_size // 2:
            raise ValueError(f"`batch_records`: a batch of {format_size(self.batch_bytes)} is too long for a segment")

    @property
    def effective_style(self) -> Style:
        """The style with `style_changes` applied; no more threads than logs, unless the changes set the threads."""
        style = self.style_changes.over(STYLES[self.style])
        return replace(style, threads=self.logs) if self._has_threads_to_spare(style) else style

    def _has_threads_to_spare(self, style: Style) -> bool:
        return self.style_changes.threads is None and style.threads > self.logs

    @property
    def logs(self) -> int:
        """Number of logs, each with an active segment: one for each partition, or one for all."""
        return 1 if self.style_changes.over(STYLES[self.style]).layout == "shared" else self.partitions

    @property
    def least_retention_bytes(self) -> int:
        """Smallest retention in bytes: each log needs a full segment beside its active one."""
        return 2 * self.effective_style.segment_size * self.logs

    @property
    def segments_phrase(self) -> str:
        """The segments that the smallest retention holds, in words."""
        return f"{self.logs} logs of two segments of {format_size(self.effective_style.segment_size)}"

    @property
    def sizes(self) -> tuple[tuple[int, float], ...]:
        """Distribution of record sizes: pairs of bytes and weight; a single pair if all records have one size."""
        return tuple((each.size, each.weight) for each in self.record_sizes) or ((self.record_size or _KIBIBYTE, 1.0),)

    @property
    def mean_record_bytes(self) -> float:
        return sum(size * weight for size, weight in self.sizes) / sum(weight for _, weight in self.sizes)

    @property
    def batch_bytes(self) -> int:
        """Size of the longest batch, in bytes."""
        return max(size for size, _ in self.sizes) * self.batch_records

    @property
    def bytes_per_second(self) -> float:
        """Initial rate of the load, in bytes per second."""
        if self.rate is not None:
            return float(self.rate)
        assert self.records_per_second is not None, "validated above"
        return self.records_per_second * self.mean_record_bytes

    def bytes_within(self, seconds: float) -> float:
        """Bytes that are due to be appended in the first `seconds` of the load."""
        bounds = [0.0, *(step.after for step in self.rate_steps), seconds]
        ratios = [1.0, *(step.ratio for step in self.rate_steps)]
        spans = (min(end, seconds) - min(begin, seconds) for begin, end in pairwise(bounds))
        return self.bytes_per_second * sum(max(0.0, span) * ratio for span, ratio in zip(spans, ratios, strict=True))
