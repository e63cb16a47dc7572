"""A soak's series with its true degradations, as the generators make it and the scoring reads it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cliffwatch.analysis.finding import FindingKind, Notice, Sample, Series
from cliffwatch.analysis.table import COLUMNS

Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Truth:
    """A degradation that a generator made; `name` is its kind, such as cliff, late or drift; times in elapsed seconds.

    `marks` maps a ratio to the time at which a drift reaches it.
    """

    name: str
    kind: FindingKind
    onset: float
    ratio: float
    marks: Mapping[float, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Soak:
    """Series of a soak: `columns` are those of the CSV, NaN where not measured; `healthy` names its look-alikes."""

    seed: int
    generator: str
    times: Column
    columns: dict[str, Column]
    window_seconds: float
    notices: tuple[Notice, ...] = ()
    truths: tuple[Truth, ...] = ()
    healthy: tuple[str, ...] = ()

    @property
    def hours(self) -> float:
        return float(self.times[-1] - self.times[0] + self.window_seconds) / 3600

    @property
    def healthy_hours(self) -> float:
        """Hours until the first degradation began; until the last window if there is no degradation."""
        first = min((truth.onset for truth in self.truths), default=float(self.times[-1]))
        return (first - float(self.times[0])) / 3600

    def measured_from(self, onset: float) -> float:
        """The start of the first measured window at or after an onset, before which no method can see it."""
        is_measured = np.any([np.isfinite(column) for column in self.columns.values()], axis=0)
        later = self.times[is_measured & (self.times >= onset)]
        return float(later[0]) if len(later) else onset

    def only(self, *names: str) -> "Soak":
        """Copy of the soak with only the series of these names."""
        columns = {name: self.columns[name] for name in names}
        return Soak(
            self.seed, self.generator, self.times, columns, self.window_seconds, self.notices, self.truths, self.healthy
        )

    def series(self) -> list[Series]:
        return [COLUMNS[name] for name in self.columns]

    def samples(self) -> list[Sample]:
        names = list(self.columns)
        rows = np.column_stack([self.columns[name] for name in names]).tolist()
        return [
            Sample(at, at + self.window_seconds, {n: v for n, v in zip(names, row, strict=True) if v == v})
            for at, row in zip(self.times.tolist(), rows, strict=True)
        ]

    def to_csv(self) -> str:
        names = list(self.columns)
        lines = [",".join(["elapsed_seconds", *names])]
        rows = np.column_stack([self.columns[name] for name in names]).tolist()
        for at, row in zip(self.times.tolist(), rows, strict=True):
            lines.append(",".join([f"{at:.3f}", *("" if v != v else f"{v:.9g}" for v in row)]))
        return "\n".join(lines) + "\n"
