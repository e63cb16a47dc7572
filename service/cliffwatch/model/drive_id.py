"""Drives in a run's windows: their identity, and the mean time of their requests."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_NUMBER = re.compile(r"\d+:\d+")


@dataclass(frozen=True, slots=True)
class DriveId:
    """Identity of a drive in a run: its number, `major:minor`, and in a run with several parts the part above it.

    Kernels number drives on their own, so that two hosts have drives with equal numbers. The text, `259:0` or
    `nvme3/259:0`, stands before a dot in the names of the drive's counters and gauges.
    """

    number: str
    part: str = ""

    def __str__(self) -> str:
        return f"{self.part}/{self.number}" if self.part else self.number


def mean_request_seconds(counters: Mapping[str, int], drive: str = "device_", kind: str = "write") -> float | None:
    """Mean seconds of a drive's requests of a kind in the counters of a window, or in sums of several windows'.

    `drive`: prefix of the drive's counters, by default of those of all drives together. None where no request was
    counted. A counter of milliseconds that is absent is 0: windows leave zeros out.
    """
    requests = counters.get(f"{drive}{kind}_operations", 0)
    return counters.get(f"{drive}{kind}_milliseconds", 0) / 1000 / requests if requests else None


def drive_figure(name: str) -> tuple[str, str] | None:
    """Number of the drive and name of the figure in the name of a part's own counter or gauge, such as
    `259:0.write_operations`; None for a name of something else."""
    number, dot, figure = name.partition(".")
    return (number, figure) if dot and _NUMBER.fullmatch(number) else None
