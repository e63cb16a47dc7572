"""Results of benchmarks: one line per figure, with its target."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` in `unit`; good when it is at most (or, with `at_least`, at least) `target`."""

    name: str
    value: float
    unit: str
    target: float
    at_least: bool = False

    @property
    def is_reached(self) -> bool:
        return self.value >= self.target if self.at_least else self.value <= self.target

    def __str__(self) -> str:
        sign, word = ("≥" if self.at_least else "≤"), ("reached" if self.is_reached else "MISSED")
        return f"{self.name:<58} {self.value:>10.4g} {self.unit:<6} {sign} {self.target:<8g} {word}"
