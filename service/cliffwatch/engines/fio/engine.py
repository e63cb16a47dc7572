"""The engine that runs Debian's `fio`."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.units import format_size
from cliffwatch.engines.contract import EngineContext, EngineFacts, Launch, Probe, Translator
from cliffwatch.engines.fio import uring
from cliffwatch.engines.fio.job import Section
from cliffwatch.engines.fio.jobfile import files_of, format_job_file, regions
from cliffwatch.engines.fio.load import FioLoad
from cliffwatch.engines.fio.output import FioTranslator
from cliffwatch.engines.fio.run import NO_DELAYS, runtime_environment
from cliffwatch.engines.fio.snapshot import OPERATIONS
from cliffwatch.model.plan import LoadPlan, PlannedWrite

JOB_FILE = "job.fio"
LAYOUT_FILE = "layout.fio"
#: Below this, fio's own timer skips intervals (docs/engines/fio.md).
SHORTEST_EXACT_WINDOW_SECONDS = 1.0


class FioEngine:
    """Engine that writes a job file, runs fio on it, and converts fio's output into windows."""

    name = "fio"
    load_model = FioLoad
    target_kinds = frozenset({"directory", "device"})
    latencies = OPERATIONS
    stop_signal = signal.SIGINT
    reads_history = False

    def is_virtual(self, load: FioLoad) -> bool:
        return False

    def plan(self, load: FioLoad, context: EngineContext) -> LoadPlan:
        direct = all(section.direct for section in load.sections)
        return LoadPlan(
            writes=_writes(load, context),
            command=(*_fio_command("fio", context), str(context.scratch / JOB_FILE)),
            direct=direct,
            written_bytes=_written_bytes(load, context),
            notes=_notes(load, context, direct),
        )

    def probe(self, load: FioLoad, context: EngineContext) -> Probe:
        """Check whether the kernel supports the load's I/O engine."""
        if not any(section.options.get("ioengine") == "io_uring" for section in load.sections):
            return Probe()
        if (why := uring.refusal()) is None:
            return Probe()
        remedy = "say ioengine=libaio, or allow it: kernel.io_uring_disabled=0, or the container's seccomp profile"
        return Probe(refused=(f"load.job: ioengine=io_uring is not allowed here ({why}); {remedy}",))

    def prepare(self, load: FioLoad, context: EngineContext) -> Launch | None:
        """Process that lays out the files that are read or overwritten; None without such files."""
        sections = tuple(section for section in load.sections if section.lays_out)
        if context.is_device or not sections:
            return None
        layout = context.scratch / LAYOUT_FILE
        layout.write_text(format_job_file(sections, None, create_only=True))
        return Launch([_fio(), str(layout)], runtime_environment(1), context.entry)

    def launch(self, load: FioLoad, context: EngineContext) -> Launch:
        """Write the job file and return the process that runs fio. Raises Problem(component_missing) without fio."""
        fio = _fio()
        device: Path | None = None
        held: tuple[int, ...] = ()
        if context.is_device:
            # A section may open its device hours after the load began, when the node's name may lead elsewhere.
            assert context.descriptor is not None, "a device is held before it is loaded"
            device, held = context.entry, (context.descriptor,)
        job = context.scratch / JOB_FILE
        sections = _begun_in_time(load, context)
        job.write_text(format_job_file(sections, device))
        delays = ",".join(str(delay) for delay in sorted({section.delay_seconds for section in sections} - {0}))
        times = [repr(context.start), repr(context.stop), repr(context.begun), delays or NO_DELAYS]
        # -P: Python imports nothing from the working directory, which is the target.
        runner = [sys.executable, "-P", "-m", "cliffwatch.engines.fio.run", *times]
        directory = context.scratch if context.is_device else context.entry
        return Launch([*runner, *_fio_command(fio, context), str(job)], directory=directory, descriptors=held)

    def translator(self, load: FioLoad, context: EngineContext) -> Translator:
        return FioTranslator(context, _longest_pause_seconds(load), _operations_per_second(load))

    def clear(self, load: FioLoad, context: EngineContext) -> None:
        return None

    def facts(self, load: FioLoad, context: EngineContext) -> EngineFacts:
        fio = shutil.which("fio")
        if fio is None:
            return EngineFacts()
        answer = subprocess.run([fio, "--version"], capture_output=True, text=True, check=False)
        return EngineFacts({"fio": answer.stdout.strip().removeprefix("fio-")})


def _fio() -> str:
    fio = shutil.which("fio")
    if fio is None:
        raise Problem(Code.COMPONENT_MISSING, "fio is not installed; `apt-get install fio` installs it")
    return fio


def _fio_command(fio: str, context: EngineContext) -> list[str]:
    milliseconds = round(context.window_seconds * 1000)
    return [fio, "--output-format=json+", f"--status-interval={milliseconds}ms"]


def _longest_pause_seconds(load: FioLoad) -> float | None:
    """Longest pause between two I/Os of the whole job: the shortest pause of its sections that begin at once."""
    pauses = [section.pause_seconds() for section in load.sections if section.delay_seconds == 0]
    return min((pause for pause in pauses if pause is not None), default=None)


def _operations_per_second(load: FioLoad) -> float | None:
    """Target rate in operations per second of every window; None if a section has no rate, or begins later."""
    rates = [None if section.delay_seconds else section.operations_per_second() for section in load.sections]
    return None if None in rates else sum(filter(None, rates))


def _begun_in_time(load: FioLoad, context: EngineContext) -> tuple[Section, ...]:
    """The sections that begin before the load ends: the same ones for every engine of a run."""
    return tuple(section for section in load.sections if context.begun + section.delay_seconds < context.stop)


def _writes(load: FioLoad, context: EngineContext) -> tuple[PlannedWrite, ...]:
    """Planned writes: every file that is laid out or written to; or the device, up to the end of its last region."""
    if context.is_device:
        if not any(section.writes for section in load.sections):
            return ()
        last = regions(load.sections)[-1]
        return (PlannedWrite(context.path, last.offset_bytes + last.size_bytes),)
    return tuple(
        PlannedWrite(path, size_bytes)
        for section in load.sections
        for path, size_bytes in files_of(section, context.path)
    )


def _written_bytes(load: FioLoad, context: EngineContext) -> int | None:
    """Bytes written by laying files out and by each rate over the load's length; None if a writer has no rate."""
    seconds = context.stop - context.start
    written = 0
    for section in load.sections:
        per_second = section.written_bytes_per_second()
        lasts_seconds = max(0.0, seconds - section.delay_seconds)
        if per_second is None and lasts_seconds > 0:
            return None
        written += round((per_second or 0) * lasts_seconds)
        if section.lays_out and not context.is_device and not context.resumed:
            written += section.size_bytes * section.jobs
    return written


def _notes(load: FioLoad, context: EngineContext, direct: bool) -> tuple[str, ...]:
    notes = [
        "fio is closed-loop: a latency counts from submission, so a stall delays the next I/O instead of counting "
        "against it; there is no `_service` twin"
    ]
    size_bytes = sum(section.size_bytes * section.jobs for section in load.sections)
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if not direct:
        notes.append("I/O goes through the page cache: the drive sees writes later, and may not see reads at all")
        if size_bytes < memory_bytes:
            notes.append(
                f"the data set ({format_size(size_bytes)}) is smaller than memory ({format_size(memory_bytes)}): "
                "reads may never reach the drive"
            )
    if context.is_device and any(section.reads for section in load.sections):
        notes.append("blocks of the device that were never written are read without touching the flash")
    if any(section.options.get("zero_buffers") == "1" for section in load.sections):
        notes.append("zeroes are written: a drive that compresses will look better than it is")
    for section in load.sections:
        if section not in _begun_in_time(load, context):
            notes.append(f"[{section.name}] would start after the end of load, so it is omitted")
    if context.window_seconds < SHORTEST_EXACT_WINDOW_SECONDS:
        notes.append("fio reports at such short intervals only roughly: some windows will cover two intervals")
    return tuple(notes)
