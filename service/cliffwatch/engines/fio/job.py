"""A fio job as Cliffwatch knows it: sections of options that passed the allow-list, read from ini text.

fio's own reader is lenient (includes, environment variables, arithmetic through a shell). This one knows sections,
`option=value` and comments, and refuses everything else.
"""

import re
from dataclasses import dataclass

from cliffwatch.base.units import format_size
from cliffwatch.engines.fio.options import ALLOWED, SWITCH, canonical, reason_refused

TEXT_LIMIT_BYTES = 64 * 1024
SECTIONS_LIMIT = 64
#: Clones over all sections: fio keeps a thread and its statistics for each.
JOBS_LIMIT = 1024
#: fio keeps a buffer of the largest block for each I/O in flight.
BUFFERS_LIMIT_BYTES = 1024**3
#: A section's name is also the name of its files.
SECTION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]{0,62}")
#: The smallest logical block of any drive.
LEAST_SECTOR_BYTES = 512
_SECONDS = {"s": 1, "m": 60, "h": 3600}
GLOBAL = "global"
#: Comment: fio ends a line at `;` or `#`, wherever it stands.
_COMMENT = re.compile(r"[;#].*")
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}


@dataclass(frozen=True, slots=True)
class Section:
    """One job section, by fio's canonical names: its own options, and those of [global] that it does not override."""

    name: str
    options: dict[str, str]

    @property
    def jobs(self) -> int:
        return int(self.options.get("numjobs", "1"))

    @property
    def depth(self) -> int:
        """I/Os in flight of each clone (iodepth)."""
        return int(self.options.get("iodepth", "1"))

    @property
    def files(self) -> int:
        """Files of each clone."""
        return int(self.options.get("nrfiles", "1"))

    @property
    def size_bytes(self) -> int:
        """Size of each clone's file or files together."""
        return parse_fio_size(self.options["size"])

    @property
    def direct(self) -> bool:
        return self.options["direct"] == "1"

    @property
    def reads(self) -> bool:
        return self.options["rw"] not in ("write", "randwrite")

    @property
    def writes(self) -> bool:
        return self.options["rw"] not in ("read", "randread")

    @property
    def delay_seconds(self) -> int:
        """Seconds from the start of the load to the start of the section."""
        delay = self.options.get("startdelay", "0s")
        return int(delay[:-1]) * _SECONDS[delay[-1]]

    @property
    def lays_out(self) -> bool:
        """Whether its files must hold data before the load begins."""
        return self.reads or self.options.get("overwrite") == "1"

    def written_bytes_per_second(self) -> int | None:
        """Most bytes that all clones write in a second; None if no rate bounds them."""
        if not self.writes:
            return 0
        bounds = []
        if "rate" in self.options:
            bounds.append(parse_fio_size(_for_writes(self.options["rate"])))
        if "rate_iops" in self.options:
            bounds.append(int(_for_writes(self.options["rate_iops"])) * self.largest_block_bytes)
        return min(bounds) * self.jobs if bounds and min(bounds) > 0 else None

    def operations_per_second(self) -> float | None:
        """Target operations per second of all clones; None without a rate, or for mixed directions or block sizes."""
        if (self.reads and self.writes) or len(set(self.block_bytes)) > 1:
            return None
        bounds = []
        direction = 0 if self.reads else -1
        if "rate_iops" in self.options:
            bounds.append(float(self.options["rate_iops"].split(",")[direction]))
        if "rate" in self.options:
            bounds.append(parse_fio_size(self.options["rate"].split(",")[direction]) / self.largest_block_bytes)
        return min(bounds) * self.jobs if bounds and min(bounds) > 0 else None

    def pause_seconds(self) -> float | None:
        """Longest pause of a clone between two I/Os, by its rates; 0 without a rate, None with a thinktime."""
        if "thinktime" in self.options:
            return None
        pauses = [0.0]
        if "rate" in self.options:
            slowest = min(parse_fio_size(rate) for rate in self.options["rate"].split(",") if rate)
            pauses.append(self.largest_block_bytes / max(1, slowest))
        if "rate_iops" in self.options:
            slowest = min(int(rate) for rate in self.options["rate_iops"].split(",") if rate)
            pauses.append(1 / max(1, slowest))
        return max(pauses)

    @property
    def block_bytes(self) -> list[int]:
        """All block sizes in the options bs, bsrange and bssplit, in bytes."""
        written = ":".join(self.options[name] for name in ("bs", "bsrange", "bssplit") if name in self.options)
        return [parse_fio_size(part.partition("/")[0]) for part in re.split("[:,-]", written) if part]

    @property
    def largest_block_bytes(self) -> int:
        return max(self.block_bytes, default=4096)


def parse_fio_size(text: str) -> int:
    """Bytes in a size as fio reads it, with k, m, g, t for powers of 1024."""
    digits = text.rstrip("kmgtKMGT")
    return int(digits) * _UNITS[text[len(digits) :].lower()]


def _for_writes(value: str) -> str:
    """The value for writes, from an option that may have one for reads and one for writes."""
    return value.split(",")[-1]


def parse_job(text: str) -> tuple[Section, ...]:
    """The job sections of an ini text. Raises ValueError that names every section and option at fault, and why."""
    if len(text.encode()) > TEXT_LIMIT_BYTES:
        raise ValueError(f"the job is longer than {TEXT_LIMIT_BYTES // 1024} KiB")
    faults: list[str] = []
    sections = tuple(Section(name, own) for name, own in _read_sections(text, faults).items())
    if not sections and not faults:
        faults.append("the job has no section; begin one with its name in brackets, such as [append]")
    if len(sections) > SECTIONS_LIMIT:
        faults.append(f"the job has {len(sections)} sections; at most {SECTIONS_LIMIT} are allowed")
    if not faults:
        faults.extend(fault for section in sections for fault in _section_faults(section))
    if not faults:
        faults.extend(_faults_together(sections))
    if faults:
        raise ValueError("; ".join(faults))
    return sections


def _read_sections(text: str, faults: list[str]) -> dict[str, dict[str, str]]:
    """Sections with the options of every [global] above them; a later [global] adds to those before it."""
    sections: dict[str, dict[str, str]] = {}
    shared: dict[str, str] = {}
    inherited: dict[str, dict[str, str]] = {}
    current: tuple[str, dict[str, str]] | None = None
    for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        line = _COMMENT.sub("", raw).strip(" \t\r")
        if not line:
            continue
        if not line.isascii() or not line.replace("\t", " ").isprintable():
            faults.append(f"line {number}: only printable ASCII characters are allowed")
        elif line.startswith("["):
            name = line[1:-1]
            if not line.endswith("]") or SECTION_NAME.fullmatch(name) is None:
                faults.append(f"line {number}: {line!r} is not a section; write [name] with letters, digits, _ + or -")
            elif name in sections:
                faults.append(f"line {number}: there are two sections [{name}]; give each a name of its own")
            elif name == GLOBAL:
                inherited[GLOBAL] = shared = dict(shared)
            else:
                sections[name], inherited[name] = {}, shared
            current = (name, shared if name == GLOBAL else sections.get(name, {}))
        elif current is None or line.split()[0] == "include":
            word = line.split("=")[0].split()[0]
            why = reason_refused(word) if word == "include" else "it stands before the first section"
            faults.append(f"line {number}: {word}: {why}")
        else:
            _read_option(line, *current, faults)
    if "startdelay" in shared:
        faults.append("[global] startdelay: say it in the section that begins later; the load itself begins at once")
    return {name: inherited[name] | own for name, own in sections.items()}


def _read_option(line: str, section: str, options: dict[str, str], faults: list[str]) -> None:
    written, equals, value = (part.strip() for part in line.partition("="))
    name = canonical(written)
    if not equals and name in ALLOWED and ALLOWED[name].kind is SWITCH:
        value = "1"  # as fio takes a bare name
    place = f"[{section}] {written}"
    option = ALLOWED.get(name)
    if option is None:
        faults.append(f"{place}: {reason_refused(written)}")
    elif name in options and section != GLOBAL:
        faults.append(f"{place}: given twice")
    elif option.kind.pattern.fullmatch(value) is None:
        faults.append(f"{place}: {value[:80]!r} is not allowed; write {option.kind.right}")
    else:
        options[name] = value


def _section_faults(section: Section) -> list[str]:
    faults = []
    for name, why in (
        ("rw", "say what it does, such as rw=write"),
        ("size", "say how large each job's file or region is, such as size=4g"),
        ("direct", "say direct=1 (past the page cache) or direct=0 (through it)"),
    ):
        if name not in section.options:
            faults.append(f"[{section.name}] {name}: missing; {why}")
    for name in ("size", "numjobs", "nrfiles", "iodepth"):
        if name in section.options and parse_fio_size(section.options[name]) == 0:
            faults.append(f"[{section.name}] {name}: must be more than 0")
    if sum(name in section.options for name in ("bs", "bsrange", "bssplit")) > 1:
        faults.append(f"[{section.name}] bs, bsrange, bssplit: give one of them")
    odd = [size for size in section.block_bytes if size % LEAST_SECTOR_BYTES]
    if not faults and section.direct and odd:
        faults.append(
            f"[{section.name}] bs: direct I/O is of whole sectors, and {odd[0]} is no multiple of "
            f"{LEAST_SECTOR_BYTES}; say another size, or direct=0"
        )
    if not faults and section.size_bytes // section.files < section.largest_block_bytes:
        faults.append(f"[{section.name}] size: smaller than one block in each file")
    return faults


def _faults_together(sections: tuple[Section, ...]) -> list[str]:
    faults = []
    jobs = sum(section.jobs for section in sections)
    if jobs > JOBS_LIMIT:
        faults.append(f"the job has {jobs} clones (numjobs) in all; at most {JOBS_LIMIT} are allowed")
    buffers_bytes = sum(section.jobs * section.depth * section.largest_block_bytes for section in sections)
    if buffers_bytes > BUFFERS_LIMIT_BYTES:
        faults.append(
            f"numjobs × iodepth × block size is {format_size(buffers_bytes)} of memory; "
            f"at most {format_size(BUFFERS_LIMIT_BYTES)} is allowed"
        )
    return faults
