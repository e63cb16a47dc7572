"""Ready-made jobs: the three stages of a broker's RAID test, and soaks shaped like a broker's own writes."""

from dataclasses import dataclass

from cliffwatch.engines.fio.job import Section

GIBIBYTE = 1024**3


@dataclass(frozen=True, slots=True)
class Stream:
    """One section of a preset; every preset's streams share its jobs, size and rate."""

    name: str
    options: dict[str, str]


@dataclass(frozen=True, slots=True)
class Preset:
    """A fio job. A user may override numjobs (clones of each stream), and each clone's size and rate (bytes/s)."""

    meaning: str
    streams: tuple[Stream, ...]
    jobs: int
    size_bytes: int

    def sections(self, jobs: int | None, size_bytes: int | None, rate_bytes: int | None) -> tuple[Section, ...]:
        """The job's sections; values that are not None override the preset's."""
        turned = {"size": str(size_bytes or self.size_bytes), "numjobs": str(jobs or self.jobs)}
        if rate_bytes is not None:
            turned["rate"] = str(rate_bytes)
        return tuple(Section(stream.name, stream.options | turned) for stream in self.streams)


_RAID = {"ioengine": "psync", "direct": "1", "bsrange": "1k-16k"}
_RAID_WRITE = Stream("write", {"rw": "write"} | _RAID)
_RAID_READ = Stream("randread", {"rw": "randread"} | _RAID)

PRESETS: dict[str, Preset] = {
    "kafka-raid-write": Preset(
        "24 jobs write 1–16 KiB blocks in sequence, each to a file of its own, past the page cache",
        (_RAID_WRITE,),
        jobs=24,
        size_bytes=4 * GIBIBYTE,
    ),
    "kafka-raid-randread": Preset(
        "24 jobs read 1–16 KiB blocks at random from laid-out files, past the page cache",
        (_RAID_READ,),
        jobs=24,
        size_bytes=4 * GIBIBYTE,
    ),
    "kafka-raid-mixed": Preset(
        "24 sequential writers and 24 random readers at once, on files of their own",
        (_RAID_WRITE, _RAID_READ),
        jobs=24,
        size_bytes=4 * GIBIBYTE,
    ),
    "append-streams": Preset(
        "64 appenders of 16 and 64 KiB blocks, an fdatasync after every eighth: many partitions on one drive",
        (
            Stream(
                "append",
                {
                    "rw": "write",
                    "ioengine": "psync",
                    "direct": "1",
                    "bssplit": "16k/60:64k/40",
                    "fdatasync": "8",
                },
            ),
        ),
        jobs=64,
        size_bytes=2 * GIBIBYTE,
    ),
    "small-direct-writes": Preset(
        "16 jobs write 4 KiB blocks past the page cache, an fdatasync after each: "
        "every message acknowledged from flash",
        (
            Stream(
                "write",
                {"rw": "write", "ioengine": "psync", "direct": "1", "bs": "4k", "fdatasync": "1"},
            ),
        ),
        jobs=16,
        size_bytes=4 * GIBIBYTE,
    ),
    "large-buffered-writes": Preset(
        "8 jobs write 1 MiB blocks through the page cache, an fsync after every 64 MiB, so that the drive sees them",
        (
            Stream(
                "write",
                {"rw": "write", "ioengine": "psync", "direct": "0", "bs": "1m", "fsync": "64"},
            ),
        ),
        jobs=8,
        size_bytes=16 * GIBIBYTE,
    ),
    "sequential-log": Preset(
        "one job appends 16 KiB blocks to one log, an fdatasync after each: a commit log",
        (
            Stream(
                "log",
                {"rw": "write", "ioengine": "psync", "direct": "1", "bs": "16k", "fdatasync": "1"},
            ),
        ),
        jobs=1,
        size_bytes=64 * GIBIBYTE,
    ),
}
