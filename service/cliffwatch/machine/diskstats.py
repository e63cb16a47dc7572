"""Kernel I/O counters of each block device: /proc/diskstats.

Fields: Documentation/admin-guide/iostats.rst of the Linux kernel. Sectors there are 512 bytes for every drive.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import reduce
from operator import add
from pathlib import Path

_SECTOR_BYTES = 512
#: The kernel prints times as 32-bit milliseconds: at queue depth 64, write time starts over every 18 hours.
_TIME_WRAP_MILLISECONDS = 2**32
#: A path of native NVMe multipath, such as nvme3c33n1: the drive nvme3n1 through controller 33.
_PATH = re.compile(r"(nvme\d+)c\d+(n\d+)")
#: Words of a line at least: numbers and name of the device, and the eleven counters that every kernel has.
_LEAST_WORDS = 14


class CountersReset(ValueError):
    """The later counters are below the earlier ones: another device has the number now. The time between is a gap."""


@dataclass(frozen=True, slots=True)
class DeviceCounters:
    """Counters of a device: totals since it appeared, sums over several devices, or increases between two readings.

    Times are sums over requests, in the kernel's milliseconds. `weighted_milliseconds` is the number of requests in
    flight, summed over time; `in_flight` is the current number, not a total. Times of a single reading may have
    wrapped; differences are right if less than 49 days of request time lie between the readings.
    """

    read_operations: int = 0
    read_bytes: int = 0
    read_milliseconds: int = 0
    write_operations: int = 0
    write_bytes: int = 0
    write_milliseconds: int = 0
    discard_operations: int = 0
    discard_bytes: int = 0
    discard_milliseconds: int = 0
    flush_operations: int = 0
    flush_milliseconds: int = 0
    in_flight: int = 0
    weighted_milliseconds: int = 0

    def __add__(self, other: "DeviceCounters") -> "DeviceCounters":
        return DeviceCounters(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, earlier: "DeviceCounters") -> "DeviceCounters":
        """Increase since `earlier`; `in_flight` is the later value. Raises CountersReset."""
        values: list[int] = []
        for each, now, before in zip(fields(self), astuple(self), astuple(earlier), strict=True):
            if each.name == "in_flight":
                values.append(now)
            elif each.name.endswith("_milliseconds"):
                values.append((now - before) % _TIME_WRAP_MILLISECONDS)
            elif now < before:
                raise CountersReset(f"{each.name} went from {before} to {now}")
            else:
                values.append(now - before)
        return DeviceCounters(*values)


def read_counters(major_minors: Iterable[str], proc: Path = Path("/proc")) -> dict[str, DeviceCounters]:
    """Counters by major:minor. A device that is absent, or whose line is cut off, is left out. Raises OSError.

    For an NVMe drive with several paths, the counters are the sums over its paths: the kernel counts requests on each
    path, but on the drive itself only since Linux 6.4.
    """
    wanted = set(major_minors)
    names: dict[str, str] = {}
    counters: dict[str, DeviceCounters] = {}
    paths: dict[str, DeviceCounters] = {}
    for line in (proc / "diskstats").read_text().splitlines():
        major, minor, name, *numbers = line.split() if len(line.split()) >= _LEAST_WORDS else ("", "", "")
        key, path = f"{major}:{minor}", _PATH.fullmatch(name)
        if path is not None:
            drive = path[1] + path[2]
            paths[drive] = paths.get(drive, DeviceCounters()) + _counters([int(number) for number in numbers])
        elif key in wanted:
            names[key], counters[key] = name, _counters([int(number) for number in numbers])
    return {key: paths.get(names[key], found) for key, found in counters.items()}


def sum_counters(counters: Iterable[DeviceCounters] | Mapping[str, DeviceCounters]) -> DeviceCounters:
    """Sum of the counters of several devices; zeros for no device."""
    each = counters.values() if isinstance(counters, Mapping) else counters
    return reduce(add, each, DeviceCounters())


def _counters(numbers: Sequence[int]) -> DeviceCounters:
    # Kernels before 4.18 count no discards, those before 5.5 no flushes.
    reads, _, read_sectors, read_time, writes, _, write_sectors, write_time, in_flight, _, weighted = numbers[:11]
    discards, _, discard_sectors, discard_time = numbers[11:15] if len(numbers) >= 15 else (0, 0, 0, 0)
    flushes, flush_time = numbers[15:17] if len(numbers) >= 17 else (0, 0)
    return DeviceCounters(
        read_operations=reads,
        read_bytes=read_sectors * _SECTOR_BYTES,
        read_milliseconds=read_time,
        write_operations=writes,
        write_bytes=write_sectors * _SECTOR_BYTES,
        write_milliseconds=write_time,
        discard_operations=discards,
        discard_bytes=discard_sectors * _SECTOR_BYTES,
        discard_milliseconds=discard_time,
        flush_operations=flushes,
        flush_milliseconds=flush_time,
        in_flight=in_flight,
        weighted_milliseconds=weighted,
    )
