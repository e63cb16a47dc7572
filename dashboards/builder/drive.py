"""The dashboard "Drive": what does this drive do, and what does it report?"""

from collections.abc import Iterator

from dashboards.builder.colors import LAYERS, READS, WRITES
from dashboards.builder.frame import (
    Document,
    Frame,
    computed,
    put_together,
    requests_variable,
    run_annotations,
    run_variable,
    start_variable,
)
from dashboards.builder.parts import Panel, Query, graph, heat, number
from dashboards.builder.promql import (
    BLOCK,
    DRIVE,
    DRIVE_EXPORTER,
    OF_DRIVE,
    RETENTION,
    RUN,
    at_start,
    drives_of_run,
    latencies,
    per,
    quantile,
    rate,
    shares,
    worst,
)

#: Drives to choose from: those of the run, also when it is over; without a run, those that report metrics of their own.
OF_RUN = f"max by (device) (last_over_time(cliffwatch_device_info{{{RUN}}}[{RETENTION}]))"
THERE = 'max by (device) ({__name__=~"cliffwatch_drive_host_written_bytes_total|cliffwatch_drive_up"})'
DRIVES = f"sort({OF_RUN}) or ({THERE} unless on () {OF_RUN})"
_HOSTS_OF_RUN = f"""max by (instance) ({drives_of_run('device=~"$device"')})"""
HOSTS_THERE = """max by (instance) (
    {__name__=~"node_disk_written_bytes_total|cliffwatch_drive_host_written_bytes_total|cliffwatch_drive_up",
    device=~"$device"})"""
HOSTS = f"sort({_HOSTS_OF_RUN}) or ({HOSTS_THERE} unless on () {_HOSTS_OF_RUN})"
BY = "instance, device"


def document() -> Document:
    request = f"{BLOCK}_device_latency_seconds_count{{{DRIVE}}}"
    frame = Frame(
        title="Drive",
        question="What does this drive do, has it free blocks left, and what did the run cost it?",
        variables=[
            run_variable(),
            computed("device", "Drive", DRIVES, r'device="([^"]+)"'),
            computed("instance", "Host", HOSTS, r'instance="([^"]+)"'),
            requests_variable(request),
            start_variable(),
        ],
        annotations=run_annotations(),
    )
    return put_together(
        frame,
        [
            ("Now, below $run", now),
            ("Latency", latency),
            ("Flash", flash),
            ("Endurance and health", endurance),
            ("What an emulated drive says of itself", emulated),
        ],
    )


def now() -> Iterator[Panel]:
    yield number(
        "Write amplification",
        """Write amplification over the last minutes: NAND bytes / host bytes. 1: the drive collects no garbage. Bad: it
        rises at the same load. Empty: not counted, or nothing written.""",
        "suffix:×",
        Query(_amplification(), "write amplification"),
        decimals=2,
    )
    yield number(
        "Free blocks",
        """Share of blocks that are free to be written. Bad: it falls, and stays low: from there on each write waits.
        Empty: the drive does not report it.""",
        "percentunit",
        Query(_gauge("free_blocks_ratio"), "free"),
        decimals=1,
    )
    yield number(
        "Temperature",
        """Temperature of the drive. Bad: near the limit of its data sheet, from where it throttles. Empty: the drive
        does not report it.""",
        "celsius",
        Query(_gauge("temperature_celsius"), "temperature"),
        decimals=0,
    )
    yield number(
        "Rated life used",
        """Share of the endurance that the maker rates. Bad: 100 %, which it may exceed.
        Empty: the drive does not report it.""",
        "percentunit",
        Query(_gauge("percentage_used_ratio"), "used"),
        bad_from=1,
        decimals=0,
    )
    yield number(
        "Spare blocks left",
        """Spare blocks that replace worn ones. Bad: below 10 %, where most makers set their warning. Empty: the drive
        does not report it.""",
        "percentunit",
        Query(_gauge("spare_ratio"), "spare"),
        bad_below=0.1,
        decimals=0,
    )
    yield number(
        "Media errors",
        """Errors that the flash could not correct; of an emulated drive, requests that failed. Bad: any that are new.
        Empty: the drive does not report it.""",
        "short",
        Query(_gauge("media_errors_total"), "errors"),
        bad_from=1,
        decimals=0,
    )


def latency() -> Iterator[Panel]:
    yield heat(
        "Device latency of $request",
        """Requests by how long the drive had them, from issue to completion, as shares of those of the same time. Bad:
        a second band far above the first: the drive does other work in between, such as garbage collection. Empty: no
        such requests, or no probe.""",
        "s",
        Query(shares(f"{BLOCK}_device_latency_seconds", f'{DRIVE}, operation="$request"'), "{{le}}"),
        repeat="request",
    )
    yield graph(
        "Device latency",
        """How long the drive has a request, by percentile, exact to a factor of two, and the p99 of writes in the run's
        baseline. Bad: p99.9 rises by an order of magnitude while p50 stays: the cliff begins at the tail. Empty: no
        requests, or no probe.""",
        "s",
        [
            *latencies(
                f"{BLOCK}_device_latency_seconds", f'{DRIVE}, operation=~"$request"', "operation", "{{operation}}"
            ),
            Query(
                f"max(run_instance_device:block_baseline_write_latency_seconds:p99{{{RUN}, {DRIVE}}})",
                "write p99, baseline",
                color="green",
                dashed=True,
            ),
        ],
        logarithmic=True,
    )
    yield graph(
        "How many times its baseline",
        """The drive's mean write latency of the newest windows by that of the run's baseline, over a few windows (fast)
        and many (slow). Bad: it leaves 1 while the load is the same: the drive slows down before the client sees it.
        Empty: no baseline yet, or no run that uses the drive.""",
        "suffix:×",
        [
            Query(
                f"""max by (span)
                ({worst(f"cliffwatch_device_degradation_ratio{{{OF_DRIVE}}}")})""",
                "{{span}}",
            )
        ],
        logarithmic=True,
    )
    yield graph(
        "Time of one write and one read",
        """Mean completion time with the wait in the queue, by the kernel's own counters: there without the probe too.
        Bad: writes take a step up at the same load and size while reads follow, which is typical of garbage collection.
        Empty: no requests in this time, or node_exporter is down.""",
        "s",
        [
            Query(
                per("node_disk_write_time_seconds_total", "node_disk_writes_completed_total", DRIVE, BY),
                "write",
                color=WRITES,
            ),
            Query(
                per("node_disk_read_time_seconds_total", "node_disk_reads_completed_total", DRIVE, BY),
                "read",
                color=READS,
            ),
            Query(
                f"max(cliffwatch_device_baseline_write_latency_seconds{{{OF_DRIVE}}})",
                "write, baseline",
                color="green",
                dashed=True,
            ),
        ],
        logarithmic=True,
    )
    yield graph(
        "Size of one write and one read",
        """Mean size of a request, by the kernel's own counters: beside the completion time. Bad: writes shrink at the
        same load, so the drive has more of them and more to clean. Empty: no requests in this time, or node_exporter is
        down.""",
        "bytes",
        [
            Query(
                per("node_disk_written_bytes_total", "node_disk_writes_completed_total", DRIVE, BY),
                "write",
                color=WRITES,
            ),
            Query(per("node_disk_read_bytes_total", "node_disk_reads_completed_total", DRIVE, BY), "read", color=READS),
        ],
    )


def flash() -> Iterator[Panel]:
    yield graph(
        "Write amplification over time",
        """Write amplification: NAND bytes / host bytes. Bad: it climbs from 1 as free blocks run out, and does not come
        back. Empty: the drive does not count media bytes, or nothing was written.""",
        "suffix:×",
        [Query(_amplification(), "write amplification")],
    )
    yield graph(
        "Free blocks over time",
        """Share of blocks that are free to be written, of drives that report it; and share of an emulated drive's flash
        that holds data. Bad: the first falls to a floor, where the cliff comes; the second is near 1, so garbage
        collection is expensive. Empty: the drive does not report it.""",
        "percentunit",
        [
            Query(_gauge("free_blocks_ratio"), "free"),
            Query(_gauge("mapped_ratio"), "holds data", color="text", dashed=True),
        ],
        maximum=1,
    )
    yield graph(
        "Host and media bytes",
        """What the host writes to the drive, and what the drive writes to NAND. Bad: the media's line leaves the
        host's, or both fall while the client asks for the same. Empty: the drive does not count them.""",
        "Bps",
        [
            Query(rate(f"{DRIVE_EXPORTER}_host_written_bytes_total", DRIVE), "host", color=LAYERS["client"]),
            Query(rate(f"{DRIVE_EXPORTER}_media_written_bytes_total", DRIVE), "media", color=LAYERS["drive"]),
        ],
    )
    yield graph(
        "What cleaning costs",
        """Bytes that garbage collection copies, that flushes program empty, and that discards make free; only emulated
        drives report them. Bad: copies come near what the host writes; no discards where files are deleted. Empty: not
        an emulated drive.""",
        "Bps",
        [
            Query(rate(f"{DRIVE_EXPORTER}_cleaning_copied_bytes_total", DRIVE), "copied"),
            Query(rate(f"{DRIVE_EXPORTER}_padded_bytes_total", DRIVE), "padded"),
            Query(rate(f"{DRIVE_EXPORTER}_trimmed_bytes_total", DRIVE), "made free"),
            Query(rate(f"{DRIVE_EXPORTER}_erased_blocks_total", DRIVE), "superblocks erased a second", unit="short"),
        ],
    )


def endurance() -> Iterator[Panel]:
    yield number(
        "Host bytes of this run",
        """What the host wrote to the drive since the run's load began, neighbours included. Bad: more than was planned.
        Empty: no run, or not counted.""",
        "bytes",
        Query(_since_start("host_written_bytes_total"), "host"),
        decimals=1,
    )
    yield number(
        "Media bytes of this run",
        """NAND bytes since the run's load began: what the run cost in endurance. Bad: a multiple of the host's. Empty:
        no run, or not counted.""",
        "bytes",
        Query(_since_start("media_written_bytes_total"), "media"),
        decimals=1,
    )
    yield number(
        "Endurance used by this run",
        """Rated life used since the run's load began. Drives report whole per cent: 0 may be almost 1. Bad: more than
        the drive can spare for a test. Empty: no run, or not counted.""",
        "percentunit",
        Query(_since_start("percentage_used_ratio"), "used"),
        decimals=1,
    )
    yield number(
        "Counts media bytes",
        """""Whether the drive reports NAND writes. Bad: no: write amplification is unknown.
        Empty: no health is reported."""
        "",
        "bool_yes_no",
        Query(_gauge("media_counter_available"), "counts"),
    )
    yield number(
        "Media bytes are from",
        """The log of the NVMe drive that they are read from. Bad: none, unless the drive is an emulated one. Empty:
        no NVMe log.""",
        "none",
        Query(f"max by (source) ({DRIVE_EXPORTER}_media_source_info{{{DRIVE}}})", "{{source}}"),
        by_name=True,
    )
    yield number(
        "Answers",
        """Whether the NVMe drive answered when it was last asked. Bad: no; what it says of itself is old or missing.
        Empty: no NVMe drive.""",
        "bool_yes_no",
        Query(f"min({DRIVE_EXPORTER}_up{{{DRIVE}}})", "answers"),
        bad_below=1,
    )
    yield graph(
        "Temperature over time",
        """Temperature of the drive. Bad: it climbs with latency: the drive throttles, and seems to collect garbage.
        Empty: the drive does not report it.""",
        "celsius",
        [Query(_gauge("temperature_celsius"), "temperature")],
    )
    yield graph(
        "Over the volume's limits",
        """Share of the time in which more was asked of a cloud's volume than it, or its instance, allows. Bad: it rises
        with latency: the limit holds requests up, not garbage collection. Empty: the drive counts none.""",
        "percentunit",
        [
            Query(
                f"max by (limit) (rate({DRIVE_EXPORTER}_limit_exceeded_seconds_total{{{DRIVE}}}[$__rate_interval]))",
                "{{limit}}",
            )
        ],
    )
    yield graph(
        "Life and spare",
        """Rated life used, and spare blocks left. Bad: a step within one run; life used at 100 %. Empty: the drive does
        not report it.""",
        "percentunit",
        [Query(_gauge("percentage_used_ratio"), "life used"), Query(_gauge("spare_ratio"), "spare left")],
    )


def emulated() -> Iterator[Panel]:
    yield graph(
        "Latency by the model",
        """The p99 that the model of the flash gave to requests. Bad: far below the device latency above: the machine,
        not the model, is what is slow. Empty: not an emulated drive.""",
        "s",
        [
            Query(
                quantile(0.99, f"{DRIVE_EXPORTER}_request_latency_seconds", DRIVE, "operation"),
                "{{operation}} p99",
                width=2,
            )
        ],
        logarithmic=True,
    )
    yield graph(
        "Requests under way",
        """Requests that the emulated drive has at the moment. Bad: as many as the queue holds, for long. Empty: not an
        emulated drive.""",
        "short",
        [Query(_gauge("queue_depth"), "under way")],
    )
    yield graph(
        "Requests answered",
        """By what they were. Bad: flushes for every write: the file system syncs more than the workload asks for.
        Empty: not an emulated drive.""",
        "ops",
        [Query(rate(f"{DRIVE_EXPORTER}_requests_total", DRIVE, "operation"), "{{operation}}")],
    )
    yield graph(
        "Bytes answered",
        "The same in bytes. Bad: writes sag while the client asks for the same. Empty: not an emulated drive.",
        "Bps",
        [Query(rate(f"{DRIVE_EXPORTER}_request_bytes_total", DRIVE, "operation"), "{{operation}}")],
    )


def _gauge(name: str) -> str:
    return f"max({DRIVE_EXPORTER}_{name}{{{DRIVE}}})"


def _amplification() -> str:
    host, media = (rate(f"{DRIVE_EXPORTER}_{side}_written_bytes_total", DRIVE) for side in ("host", "media"))
    return f"{media} / ({host} > 0)"


def _since_start(name: str) -> str:
    """PromQL: increase of a metric of the drive since the start of the run's load."""
    return f"{_gauge(name)} - {at_start(f'{DRIVE_EXPORTER}_{name}{{{DRIVE}}}', '${run_start}')}"
