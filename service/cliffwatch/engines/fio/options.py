"""Allow-list of fio job options: which pass, what each may hold, and why the others are refused.

A job is never passed to fio as it was written: options that pass are written anew from this table, so that no spelling,
alias, comment or line ending can bypass it.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OptionKind:
    """The values that an option may hold: those that match `pattern`; `right` describes them in messages."""

    pattern: re.Pattern[str]
    right: str


def _kind(pattern: str, right: str) -> OptionKind:
    return OptionKind(re.compile(pattern), right)


def _one_of(*words: str) -> OptionKind:
    return _kind("|".join(words), f"one of {', '.join(words)}")


_SIZE = r"\d{1,15}[kmgtKMGT]?"
_SIZE_RIGHT = "a number of bytes, or with k, m, g or t (powers of 1024)"
_SPLIT = rf"{_SIZE}/\d{{0,3}}(:{_SIZE}/\d{{0,3}})*"

INTEGER = _kind(r"\d{1,9}", "a whole number")
PERCENT = _kind(r"\d{1,2}|100", "a whole number from 0 to 100")
SIZE = _kind(_SIZE, _SIZE_RIGHT)
SIZES = _kind(rf"{_SIZE}(,{_SIZE})?", f"{_SIZE_RIGHT}; or two of them, for reads and for writes: 4k,16k")
SIZE_RANGE = _kind(rf"{_SIZE}-{_SIZE}(,{_SIZE}-{_SIZE})?", "a range of sizes: 1k-16k; or two, for reads and for writes")
SIZE_SPLIT = _kind(rf"{_SPLIT}(,{_SPLIT})?", "sizes with percentages: 4k/60:64k/40")
COUNTS = _kind(r"\d{1,9}(,\d{1,9})?", "a whole number; or two of them, for reads and for writes")
TIME = _kind(r"\d{1,9}(us|ms|s|m|h)?", "a time: 250us, 10ms, 2s; a bare number is microseconds")
DELAY = _kind(r"\d{1,6}(s|m|h)", "a time with its unit: 90s, 20m, 12h")
SWITCH = _kind("[01]", "0 or 1")
DISTRIBUTION = _kind(
    r"random|(zipf|pareto):\d+(\.\d+)?|normal:\d{1,2}(\.\d+)?", "random, zipf:1.2, pareto:0.2 or normal:20"
)


@dataclass(frozen=True, slots=True)
class Option:
    """An allowed option: the values that it may hold, and its meaning."""

    kind: OptionKind
    meaning: str


#: Directions of I/O. fio's trims are left out: a soak measures reads, writes and syncs.
DIRECTIONS = ("read", "write", "randread", "randwrite", "rw", "readwrite", "randrw")

ALLOWED: dict[str, Option] = {
    "rw": Option(_one_of(*DIRECTIONS), "direction and order of I/O"),
    "ioengine": Option(
        _one_of("sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "posixaio"),
        "how I/O is submitted; engines that load a file, use a network or run programs do not pass",
    ),
    "direct": Option(SWITCH, "bypass the page cache"),
    "sync": Option(_one_of("0", "1", "none", "sync", "dsync"), "open files O_SYNC or O_DSYNC"),
    "fsync": Option(INTEGER, "fsync after so many writes"),
    "fdatasync": Option(INTEGER, "fdatasync after so many writes"),
    "end_fsync": Option(SWITCH, "fsync when a job ends"),
    "fsync_on_close": Option(SWITCH, "fsync when a file is closed"),
    "overwrite": Option(SWITCH, "lay files out before they are written"),
    "fallocate": Option(_one_of("none", "native", "posix", "keep", "truncate"), "how files are pre-allocated"),
    "invalidate": Option(SWITCH, "drop a file's page cache before use"),
    "fadvise_hint": Option(_one_of("0", "1", "random", "sequential"), "access pattern announced to the kernel"),
    "bs": Option(SIZES, "block size"),
    "bsrange": Option(SIZE_RANGE, "block sizes drawn from a range"),
    "bssplit": Option(SIZE_SPLIT, "block sizes by percentage"),
    "ba": Option(SIZES, "alignment of random offsets"),
    "size": Option(SIZE, "size of each job's file, or of its region of a device"),
    "nrfiles": Option(INTEGER, "files that a job's size is divided into"),
    "file_service_type": Option(_one_of("random", "roundrobin", "sequential"), "which file is next"),
    "openfiles": Option(INTEGER, "files kept open at a time"),
    "numjobs": Option(INTEGER, "clones of the job, each with files of its own"),
    "iodepth": Option(INTEGER, "I/Os in flight (asynchronous engines)"),
    "iodepth_low": Option(INTEGER, "depth to drain to before filling again"),
    "iodepth_batch": Option(INTEGER, "I/Os submitted at once"),
    "iodepth_batch_complete_min": Option(INTEGER, "I/Os waited for at once, at least"),
    "iodepth_batch_complete_max": Option(INTEGER, "I/Os reaped at once, at most"),
    "startdelay": Option(DELAY, "begin so long after the load does, and end with it; in a section, not in [global]"),
    "rate": Option(SIZES, "bytes a second and job, at most"),
    "rate_iops": Option(COUNTS, "I/Os a second and job, at most"),
    "rate_process": Option(_one_of("linear", "poisson"), "how rate-limited I/Os are spaced"),
    "thinktime": Option(TIME, "pause between blocks"),
    "thinktime_spin": Option(TIME, "part of the pause that is spent busy"),
    "thinktime_blocks": Option(INTEGER, "blocks between pauses"),
    "rwmixread": Option(PERCENT, "share of reads in a mixed job"),
    "rwmixwrite": Option(PERCENT, "share of writes in a mixed job"),
    "percentage_random": Option(PERCENT, "share of random offsets"),
    "random_distribution": Option(DISTRIBUTION, "which offsets are hot"),
    "random_generator": Option(_one_of("tausworthe", "lfsr", "tausworthe64"), "generator of random offsets"),
    "randrepeat": Option(SWITCH, "the same random order every time (default here: 0)"),
    "randseed": Option(INTEGER, "seed of the random order"),
    "norandommap": Option(SWITCH, "do not remember which blocks were visited (default here: 1)"),
    "refill_buffers": Option(SWITCH, "new data for every write (default here: 1)"),
    "scramble_buffers": Option(SWITCH, "change the data of each write a little"),
    "zero_buffers": Option(SWITCH, "write zeroes: a drive that compresses will look better than it is"),
    "buffer_compress_percentage": Option(PERCENT, "how compressible the data is"),
    "buffer_compress_chunk": Option(SIZE, "unit of compressible data"),
    "dedupe_percentage": Option(PERCENT, "share of identical blocks"),
}

#: fio's other names of allowed options.
ALIASES: dict[str, str] = {
    "readwrite": "rw",
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "blockalign": "ba",
    "nr_files": "nrfiles",
    "start_delay": "startdelay",
    "iodepth_batch_submit": "iodepth_batch",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
}

_TARGET = "the run's target says where I/O goes"
_PHASES = "the workload's `phases` say how long"
_OUTPUT = "windows are made from fio's output, which must have one shape"
_LOGS = "logs grow in memory until fio ends, and two sections may overwrite each other's; windows hold the same"
_MACHINE = "it changes the machine, not the load"
_PROGRAM = "fio would run a program"
_REPLAY = "I/O would follow a trace and leave the target"
_VERIFY = "fio would remember every write in memory; a soak's memory must not grow"
_SERIAL = "all sections of a soak run at once; make a workload of each stage"

_SUBMISSION = (
    "fio counts a latency from submission all the same, so that a stall delays the next I/O uncounted; the engines "
    "storage and kafka keep a schedule and count from when the work was due"
)
_SEARCHES = (
    "fio would change the load until it kept to a latency, and a soak's load stays the same; say a limit such as 'p99 "
    "of write <= 2ms', or use the `search` of the engine kafka"
)

#: Why an option is refused, by name.
REFUSED: dict[str, str] = {
    **dict.fromkeys(("exec_prerun", "exec_postrun"), _PROGRAM),
    **dict.fromkeys(("filename", "directory", "opendir", "filename_format", "unique_filename", "lockfile"), _TARGET),
    **dict.fromkeys(("offset", "offset_increment", "offset_align"), "Cliffwatch sets this itself: " + _TARGET),
    **dict.fromkeys(("runtime", "timeout", "time_based", "ramp_time"), "Cliffwatch sets this itself: " + _PHASES),
    **dict.fromkeys(("loops", "number_ios", "io_size", "io_limit"), _PHASES),
    **dict.fromkeys(
        ("thread", "group_reporting", "lat_percentiles", "clat_percentiles", "slat_percentiles", "percentile_list"),
        "Cliffwatch sets this itself: " + _OUTPUT,
    ),
    **dict.fromkeys(("exitall_on_error", "disk_util"), "Cliffwatch sets this itself: " + _OUTPUT),
    **dict.fromkeys(
        ("unified_rw_reporting", "stats", "gtod_reduce", "new_group", "per_job_logs", "significant_figures"), _OUTPUT
    ),
    **dict.fromkeys(("stonewall", "wait_for", "wait_for_previous", "exitall", "exit_what"), _SERIAL),
    "io_submit_mode": _SUBMISSION,
    "rate_ignore_thinktime": "pauses and rates are held to together; say one of `thinktime` and `rate`",
    "max_latency": "fio would end at the first slow I/O, which a soak is there for; say a limit such as 'p999 <= 1s'",
    "serialize_overlap": "I/Os to the same blocks would wait for one another in fio, and their latency with them",
    "nowait": "I/Os that would wait are failed instead, and no latency of theirs is counted",
    "rate_min": "fio would end when it is slower; say a limit such as 'throughput >= 1MB/s'",
    "rate_iops_min": "fio would end when it is slower; say a limit such as 'throughput >= 1MB/s'",
    "rate_cycle": "it is for rate_min; say a limit such as 'throughput >= 1MB/s'",
    "thinktime_blocks_type": "say thinktime_blocks; it counts blocks that were completed",
    "buffered": "say direct=0 or direct=1",
    "filesize": "say size",
    "file_append": "files would grow without end",
    "fill_device": "the target would be filled",
    "fill_fs": "the target would be filled",
    "create_only": "nothing would be measured",
    "allow_mounted_write": "a mounted device is never written to",
    "continue_on_error": "an I/O error ends the engine, is recorded, and the engine is started again",
    "ignore_error": "an I/O error ends the engine, is recorded, and the engine is started again",
    "unlink": "files of a run are kept until the run is over",
    "unlink_each_loop": "files of a run are kept until the run is over",
    "profile": "a profile brings options that are not seen here",
    "include": "another file's options are not seen here",
    "ioscheduler": _MACHINE,
    "lockmem": _MACHINE,
    "nice": _MACHINE,
    "prio": _MACHINE,
    "prioclass": _MACHINE,
    "mem": "memory could be mapped from any file",
    "iomem": "memory could be mapped from any file",
    "hugepage-size": _MACHINE,
    "uid": "fio would change its user",
    "gid": "fio would change its group",
    "do_verify": _VERIFY,
    "experimental_verify": _VERIFY,
    "merge_blktrace_file": _REPLAY,
    "buffer_pattern": "it may read any file; say buffer_compress_percentage or zero_buffers",
    "server": "fio would serve or call another host",
    "client": "fio would serve or call another host",
}

#: Why a family of options is refused, by the prefix of their names.
REFUSED_PREFIXES: tuple[tuple[str, str], ...] = (
    ("exec", _PROGRAM),
    ("write_iolog", _REPLAY),
    ("write_", _LOGS),
    ("log_", _LOGS),
    ("read_iolog", _REPLAY),
    ("replay_", _REPLAY),
    ("merge_blktrace", _REPLAY),
    ("verify", _VERIFY),
    ("trim", "discards are not part of a soak"),
    ("cgroup", _MACHINE),
    ("cpu", _MACHINE),
    ("numa_", _MACHINE),
    ("zone", "zoned devices are not supported"),
    ("disable_", _OUTPUT),
    ("latency_", _SEARCHES),
    ("cmdprio", "priorities of single I/Os change what the drive is asked to hurry with; make a workload of each"),
    ("steadystate", _PHASES),
    ("ss", _PHASES),
)


def reason_refused(option: str) -> str:
    """Why an option is refused that is neither in ALLOWED nor an alias."""
    if option in REFUSED:
        return REFUSED[option]
    for prefix, reason in REFUSED_PREFIXES:
        if option.startswith(prefix):
            return reason
    return "not an option that Cliffwatch allows; docs/engines/fio.md lists those"


def canonical(option: str) -> str:
    """fio's own name of an option that may be written in several ways."""
    return ALIASES.get(option, option)
