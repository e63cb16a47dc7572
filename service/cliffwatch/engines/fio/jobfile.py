"""The job file that fio reads, and where its sections write: files in the run's directory, or regions of a device."""

from dataclasses import dataclass
from pathlib import Path

from cliffwatch.engines.fio.job import Section

#: Options for the output that windows are made from, and for a soak. A section's own option overrides these.
COMMON = {
    "thread": "1",
    "group_reporting": "1",
    "time_based": "1",
    "runtime": "${CLIFFWATCH_RUNTIME}",
    "lat_percentiles": "1",
    "clat_percentiles": "0",
    "slat_percentiles": "0",
    "percentile_list": "50",
    "disk_util": "0",
    "exitall_on_error": "1",
    "randrepeat": "0",
    "norandommap": "1",
    "refill_buffers": "1",
}


@dataclass(frozen=True, slots=True)
class Region:
    """Region of a device for a section's clones; each clone uses a share of its own, of the section's `size`."""

    offset_bytes: int
    size_bytes: int


def regions(sections: tuple[Section, ...]) -> list[Region]:
    """Regions of the sections, side by side, so that no clone overwrites another's data."""
    placed, offset = [], 0
    for section in sections:
        size = section.size_bytes * section.jobs
        placed.append(Region(offset, size))
        offset += size
    return placed


def files_of(section: Section, directory: Path) -> list[tuple[Path, int]]:
    """The files that a section's clones use, by fio's own naming, and their sizes in bytes."""
    size = section.size_bytes // section.files
    return [
        (directory / f"{section.name}.{job}.{file}", size)
        for job in range(section.jobs)
        for file in range(section.files)
    ]


def format_job_file(sections: tuple[Section, ...], device: Path | None, create_only: bool = False) -> str:
    """Job file as ini text, with files in the working directory or regions of `device`.

    `create_only`: fio only lays out the files.
    """
    common = COMMON | ({"filename": str(device)} if device is not None else {"directory": "."})
    if create_only:
        common |= {"create_only": "1"}
    blocks = [_format_section("global", common)]
    for section, region in zip(sections, regions(sections), strict=True):
        options = {name: value for name, value in section.options.items() if name != "startdelay"}
        if section.delay_seconds and not create_only:
            options |= {"startdelay": f"${{{delay_variable(section)}}}", "runtime": f"${{{runtime_variable(section)}}}"}
        if device is not None:
            options = {name: value for name, value in options.items() if name not in ("nrfiles", "openfiles")}
            options |= {"offset": str(region.offset_bytes), "offset_increment": options["size"]}
        blocks.append(_format_section(section.name, options))
    return "\n".join(blocks)


def delay_variable(section: Section) -> str:
    """Environment variable with the remaining delay of a section that begins later; fio reads it when it starts."""
    return f"CLIFFWATCH_DELAY_{section.delay_seconds}"


def runtime_variable(section: Section) -> str:
    """Environment variable with the runtime of a section that begins later, counted from when it begins."""
    return f"CLIFFWATCH_RUNTIME_{section.delay_seconds}"


def _format_section(name: str, options: dict[str, str]) -> str:
    return "".join([f"[{name}]\n", *(f"{option}={value}\n" for option, value in options.items())])
