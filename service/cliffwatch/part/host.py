"""Host conditions and resource use of the engine, per window: evidence for or against each cause of slowness.

A handful of files of /proc is read once a window, however long the run and however busy the host. Figures that the
kernel does not offer (no pressure figures, no limit on the control group) are absent.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cliffwatch.base.clock import Clock, SystemClock
from cliffwatch.base.units import four_digits
from cliffwatch.part.interval import Interval

_TICK_MILLISECONDS = 1000 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
#: Most levels of control groups that are read, from the engine's own upwards.
_DEPTH_LIMIT = 12
#: Most threads of a process that are read.
_THREADS_LIMIT = 128
#: No further descendants of the engine are read once this many processes are found, the engine included.
_PROCESSES_LIMIT = 64
_CPU_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
#: Files of /proc/pressure, and the gauges that are made from them.
_PRESSURE = {"io": "host_io_pressure_ratio", "cpu": "host_cpu_pressure_ratio"}
_DIRTY = {
    "nr_dirty": "host_dirty_bytes",
    "nr_writeback": "host_writeback_bytes",
    "nr_dirty_threshold": "host_dirty_limit_bytes",
}


@dataclass(frozen=True, slots=True)
class _Totals:
    """Totals of the engine, the CPUs and pressure at one moment; a total that is unknown is absent."""

    at: float
    engine: dict[str, float] = field(default_factory=dict)
    cpu_ticks: dict[str, int] = field(default_factory=dict)
    pressure_seconds: dict[str, float] = field(default_factory=dict)


class HostConditions:
    """Per interval: the engine's CPU time, waiting for CPUs and I/O; the host's CPU use, pressure and dirty pages."""

    def __init__(self, clock: Clock | None = None, proc: Path = Path("/proc"), cgroup: Path | None = None) -> None:
        """`cgroup`: where control groups are mounted; /sys/fs/cgroup by default."""
        self._clock = clock or SystemClock()
        self._proc = proc
        self._cgroup = Path("/sys/fs/cgroup") if cgroup is None else cgroup
        self._pid: int | None = None
        self._last = self._read()

    def restart(self, engine_pid: int | None) -> None:
        """Begin an interval now. The engine is the process `engine_pid` with its threads and descendants."""
        self._pid = engine_pid
        self._last = self._read()

    def since_last(self) -> Interval:
        """Interval that ends now. An engine that is gone has no counters in it."""
        before, self._last = self._last, self._read()
        seconds = self._last.at - before.at
        if seconds <= 0:
            return Interval()
        now = self._last
        counters = {
            name: round(total - before.engine[name])
            for name, total in now.engine.items()
            if total >= before.engine.get(name, float("inf"))
        }
        if counters.get("engine_cancelled_bytes") == 0:
            del counters["engine_cancelled_bytes"]  # zero in most windows
        gauges = _cpu_ratios(before.cpu_ticks, now.cpu_ticks)
        for name, total in now.pressure_seconds.items():
            if name in before.pressure_seconds:
                gauges[name] = four_digits(min(1.0, max(0.0, (total - before.pressure_seconds[name]) / seconds)))
        gauges.update(self._dirty())
        return Interval(counters, gauges)

    def _read(self) -> _Totals:
        return _Totals(self._clock.monotonic(), self._engine(), self._cpu(), self._pressure())

    def _engine(self) -> dict[str, float]:
        """Totals of the engine and its descendants; empty when the engine is gone.

        Descendants are included because a wrapper that starts the engine and waits for it does no I/O itself. Once a
        child has ended and was waited for, its totals are counted at its parent, so the sum does not drop.
        """
        if self._pid is None:
            return {}
        engine = self._proc / str(self._pid)
        known = [totals for process in _process_tree(engine) if (totals := _process_totals(process))]
        if not known:
            return {}
        # A total that one process lacks, such as the I/O of another user's process, is unknown for all together.
        totals = {name: sum(each[name] for each in known) for name in known[0] if all(name in each for each in known)}
        try:
            throttled = self._throttled_milliseconds((engine / "cgroup").read_text())
        except (OSError, ValueError):
            return totals
        if throttled is not None:
            totals["engine_throttled_milliseconds"] = throttled
        return totals

    def _throttled_milliseconds(self, membership: str) -> float | None:
        """Milliseconds for which CPU limits throttled the engine's control group or those above; None without any."""
        found = None
        for directory in self._groups(membership):
            throttled = _throttled(directory)
            if throttled is not None:
                found = (found or 0.0) + throttled
        return found

    def _groups(self, membership: str) -> Iterator[Path]:
        """Directories of the engine's CPU control group and those above it. `membership`: text of /proc/PID/cgroup."""
        for line in membership.splitlines():
            number, controllers, path = line.split(":", 2)
            if number == "0" and not controllers:
                root = self._cgroup if (self._cgroup / "cgroup.controllers").exists() else self._cgroup / "unified"
            elif "cpu" in controllers.split(","):
                root = self._cgroup / controllers
            else:
                continue
            group = root / path.lstrip("/")
            for _ in range(_DEPTH_LIMIT):
                yield group  # the root too: in a container it is the container's own, with the container's limit
                if group == root:
                    break
                group = group.parent

    def _cpu(self) -> dict[str, int]:
        with (self._proc / "stat").open() as file:
            return dict(zip(_CPU_FIELDS, map(int, file.readline().split()[1:]), strict=False))

    def _pressure(self) -> dict[str, float]:
        """Total seconds in which at least one task waited for a resource, by gauge; absent if the kernel has none."""
        totals = {}
        for resource, name in _PRESSURE.items():
            try:
                some = (self._proc / "pressure" / resource).read_text().splitlines()[0]
                totals[name] = int(some.rpartition("total=")[2]) / 1e6
            except (OSError, ValueError, IndexError):
                continue
        return totals

    def _dirty(self) -> dict[str, float]:
        """Bytes of dirty page cache and of page cache being written, and the limit at which writers have to wait."""
        try:
            lines = (self._proc / "vmstat").read_text().splitlines()
        except OSError:
            return {}
        pages = dict(line.split() for line in lines if line.startswith(("nr_dirty", "nr_writeback")))
        return {name: int(pages[key]) * _PAGE_BYTES for key, name in _DIRTY.items() if key in pages}


def _process_tree(process: Path) -> list[Path]:
    """Directories in /proc of a process and its living descendants."""
    found = [process]
    for each in found:
        for thread in _threads(each):
            with suppress(OSError):  # it ended, or the kernel has no CONFIG_PROC_CHILDREN
                found += [process.parent / child for child in (thread / "children").read_text().split()]
        if len(found) >= _PROCESSES_LIMIT:
            break
    return found


def _threads(process: Path) -> list[Path]:
    try:
        return list((process / "task").iterdir())[:_THREADS_LIMIT]
    except OSError:
        return []


def _process_totals(process: Path) -> dict[str, float]:
    """Totals of one process; absent where the kernel does not count them, or when the process is gone."""
    totals: dict[str, float] = {}
    try:
        ticks = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
        # utime, stime, and those of children that were waited for: proc(5).
        totals["engine_cpu_milliseconds"] = sum(map(int, ticks[11:15])) * _TICK_MILLISECONDS
        totals["engine_waiting_milliseconds"] = _waited_milliseconds(process)
        io = dict(line.split(": ") for line in (process / "io").read_text().splitlines())
        totals["engine_written_bytes"] = int(io["write_bytes"])
        totals["engine_read_bytes"] = int(io["read_bytes"])
        totals["engine_cancelled_bytes"] = int(io.get("cancelled_write_bytes", 0))
    except (OSError, ValueError, KeyError, IndexError):
        return totals  # it ended while it was read, or the kernel does not count this
    return totals


def _waited_milliseconds(process: Path) -> float:
    """Milliseconds for which the process's threads were ready to run and had no CPU, added up."""
    nanoseconds = 0
    for thread in _threads(process):
        try:
            nanoseconds += int((thread / "schedstat").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return nanoseconds / 1e6


def _throttled(group: Path) -> float | None:
    """Throttled milliseconds of a control group; None when the group has no limit and never had."""
    try:
        fields = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    if not int(fields.get("nr_periods", 0)):
        return None
    if "throttled_usec" in fields:
        return int(fields["throttled_usec"]) / 1e3
    return int(fields["throttled_time"]) / 1e6 if "throttled_time" in fields else None


def _cpu_ratios(before: dict[str, int], now: dict[str, int]) -> dict[str, float]:
    """Shares of all CPU time between two readings: busy, and taken by the hypervisor for others (steal)."""
    spent = {name: now[name] - before.get(name, 0) for name in now}
    total = sum(spent.values())
    if total <= 0 or not before:
        return {}
    idle = spent.get("idle", 0) + spent.get("iowait", 0)
    ratios = {"host_cpu_busy_ratio": four_digits(min(1.0, max(0.0, 1 - idle / total)))}
    if "steal" in spent:
        ratios["host_cpu_steal_ratio"] = four_digits(min(1.0, max(0.0, spent["steal"] / total)))
    return ratios
