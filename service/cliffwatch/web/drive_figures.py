"""A drive's health figures and notes, the same on every page that shows them."""

from dataclasses import dataclass
from typing import Protocol

from cliffwatch.base.units import format_amplification, format_share
from cliffwatch.report.format import count

NO_HEALTH = "no health log (SMART): NVMe drives report one through the drive exporter, aging drives by themselves"


@dataclass(frozen=True, slots=True)
class Figure:
    """A tile of a page; `is_bad` where the figure by itself shows a problem."""

    name: str
    value: str
    note: str = ""
    is_bad: bool = False


class HealthFigures(Protocol):
    """Health figures of a drive; None for a figure that it does not report."""

    @property
    def answers(self) -> float | None: ...
    @property
    def temperature_celsius(self) -> float | None: ...
    @property
    def percentage_used_ratio(self) -> float | None: ...
    @property
    def spare_ratio(self) -> float | None: ...
    @property
    def free_blocks_ratio(self) -> float | None: ...
    @property
    def media_errors(self) -> float | None: ...
    @property
    def write_amplification(self) -> float | None: ...


def health_figures(health: HealthFigures) -> list[Figure]:
    """Reported health figures of a drive, ordered by how well they show a cliff."""
    found = []
    if health.answers is not None and not health.answers:
        found.append(Figure("health", "no answer", "the drive was asked and did not answer", is_bad=True))
    if health.write_amplification is not None:
        found.append(
            Figure(
                "write amplification",
                format_amplification(health.write_amplification),
                "NAND / host bytes, last 10 min",
            )
        )
    if health.free_blocks_ratio is not None:
        found.append(Figure("free blocks", format_share(health.free_blocks_ratio), "of all blocks"))
    if health.temperature_celsius is not None:
        found.append(Figure("temperature", f"{health.temperature_celsius:.0f} °C"))
    if health.percentage_used_ratio is not None:
        used = health.percentage_used_ratio
        found.append(Figure("life used", format_share(used), "of rated endurance", is_bad=used >= 1))
    if health.spare_ratio is not None:
        found.append(Figure("spare blocks", format_share(health.spare_ratio), "left"))
    if health.media_errors is not None:
        found.append(Figure("media errors", count(health.media_errors), is_bad=health.media_errors > 0))
    return found
