"""The dashboard "Run": one run from its client down to its drives, on one time axis."""

from collections.abc import Iterator, Mapping
from typing import Any

from dashboards.builder.parts import (
    WHOLE,
    Query,
    annotation,
    datasource_variable,
    graph,
    heat,
    number,
    presence,
    variable,
)
from grafana_foundation_sdk.builders import dashboard as grafana
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as models

UID = "cliffwatch-run"
Panel = Builder[models.Panel]

#: What belongs to the run, and to the drives below it.
RUN = 'run_id="$run"'
DRIVE = 'instance=~"$instance", device=~"$device"'
#: The block-layer probe's metrics.
BLOCK = "ebpf_exporter_cliffwatch_block"
QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def run_dashboard() -> grafana.Dashboard:
    """The dashboard without its annotations."""
    made = (
        grafana.Dashboard("Run")
        .uid(UID)
        .description("One run: is it going on, what does its client see, and what do its drives do?")
        .tags(["cliffwatch"])
        .timezone("browser")
        .time("now-30m", "now")
        .refresh("10s")
        .readonly()
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .with_variable(datasource_variable())
        .with_variable(variable("run", "Run", "label_values(cliffwatch_run_info, run_id)", newest_first=True))
        .with_variable(
            variable("instance", "Host", f"label_values(cliffwatch_device_info{{{RUN}}}, host)", several=True)
        )
        .with_variable(
            variable("device", "Drive", f"label_values(cliffwatch_device_info{{{RUN}}}, device)", several=True)
        )
        .with_variable(
            variable(
                "operation",
                "Operation",
                f"label_values(cliffwatch_window_latency_seconds{{{RUN}}}, operation)",
                several=True,
            )
        )
        .with_variable(
            variable(
                "request",
                "Request",
                f"label_values({BLOCK}_device_latency_seconds_count{{{DRIVE}}}, operation)",
                several=True,
            )
        )
    )
    identity = 0
    for title, panels in (
        ("State", state()),
        ("Client", client()),
        ("Drives", drives()),
        ("Surroundings", surroundings()),
    ):
        identity += 1
        made = made.with_row(grafana.Row(title).id(identity))
        for panel in panels:
            identity += 1
            made = made.with_panel(_numbered(panel, identity))
    return made


def _numbered(panel: Any, identity: int) -> Panel:
    """Panels keep their place as their identity, so that links to them hold while nothing is moved."""
    numbered: Panel = panel.id(identity)
    return numbered


def annotations() -> list[Mapping[str, object]]:
    return [
        annotation(
            "Phases",
            "blue",
            f"max by (phase) (cliffwatch_run_phase{{{RUN}}}) == 1",
            title="{{phase}}",
            text="The run's phase",
            tag="phase",
        ),
        annotation(
            "Alerts",
            "red",
            'max by (alertname, severity, device) (ALERTS{alertstate="firing", severity!="info", run_id=~"$run|"})',
            title="{{alertname}}",
            text="{{severity}} {{device}}",
            tag="severity",
        ),
    ]


def state() -> Iterator[Panel]:
    yield number(
        "Phase",
        "The phase that the run is in. A dash: no worker carries it out; it is queued, over, or has lost its worker.",
        "none",
        Query(f"max by (phase) (cliffwatch_run_phase{{{RUN}}}) == 1", "{{phase}}"),
        by_name=True,
    )
    yield number(
        "Progress",
        "Share of the planned load that is over. Bad: it stands still.",
        "percentunit",
        Query(f"max(cliffwatch_run_progress_ratio{{{RUN}}})", "progress"),
        decimals=1,
    )
    yield number(
        "Load left",
        "Time until the load is planned to end. Bad: it stays the same while the run is under load.",
        "s",
        Query(f"clamp_min(max(cliffwatch_run_end_timestamp_seconds{{{RUN}}}) - time(), 0)", "left"),
    )
    yield number(
        "Windows",
        "Windows that the present worker has put on disk. It counts from 0 again after the run was resumed.",
        "short",
        Query(f"max(cliffwatch_windows_total{{{RUN}}})", "windows"),
        decimals=0,
    )
    yield number(
        "Newest window's age",
        "Time since the end of the newest window, in windows. Bad: 3 or more under load, nothing is being measured.",
        "suffix: windows",
        Query(
            f"""(time() - max(cliffwatch_last_window_timestamp_seconds{{{RUN}}}))
            / max(cliffwatch_run_window_seconds{{{RUN}}})""",
            "age",
        ),
        bad_from=3,
        decimals=1,
    )
    yield number(
        "Errors",
        "Operations that failed since the present worker began. Bad: any.",
        "short",
        Query(f"max(cliffwatch_errors_total{{{RUN}}})", "errors"),
        bad_from=1,
        decimals=0,
        width=2,
    )
    yield number(
        "Restarts",
        "Times that the present worker started the engine again. Bad: any, each is a gap.",
        "short",
        Query(f"max(cliffwatch_engine_restarts_total{{{RUN}}})", "restarts"),
        bad_from=1,
        decimals=0,
        width=2,
    )


def client() -> Iterator[Panel]:
    yield graph(
        "Latency of $operation in the newest window",
        """Exact percentiles of each window, from when the operation was due; `_service` names count from its start.
        Bad: the high percentiles leave the low ones behind (garbage collection), or all rise together (saturation).""",
        "s",
        [
            Query(
                f'max by (quantile) (cliffwatch_window_latency_seconds{{{RUN}, operation="$operation"}})',
                "{{quantile}}",
            )
        ],
        logarithmic=True,
        width=WHOLE,
        repeat="operation",
    )
    yield graph(
        "Latency, p99",
        """p99 of the merged histogram over the time that one point stands for: exact to a factor of two, and right at
        any zoom, which percentiles of windows are not. Bad: a step that stays.""",
        "s",
        [Query(_quantile(0.99, "cliffwatch_latency_seconds", RUN, "operation"), "{{operation}}")],
        logarithmic=True,
        width=WHOLE,
    )
    yield graph(
        "Operations of client and drives",
        """What the client asks for and gets, and the reads and writes that the drives complete. Bad: the client's line
        falls while its schedule debt grows (it gets less than it asks for), or the drives' lines are far below the
        client's (the page cache answers).""",
        "ops",
        [
            Query(f"sum(rate(cliffwatch_operations_total{{{RUN}}}[$__rate_interval]))", "client"),
            Query(f"sum(rate(node_disk_reads_completed_total{{{DRIVE}}}[$__rate_interval]))", "drive reads"),
            Query(f"sum(rate(node_disk_writes_completed_total{{{DRIVE}}}[$__rate_interval]))", "drive writes"),
        ],
    )
    yield graph(
        "Throughput of client and drives",
        """Bytes that the client moves, and that the drives read and write. Bad: the client's line sags while nobody
        changed the load; drives that write far more than the client are paying for the file system or their neighbours.
        """,
        "Bps",
        [
            Query(f"sum(rate(cliffwatch_bytes_total{{{RUN}}}[$__rate_interval]))", "client"),
            Query(f"sum(rate(node_disk_read_bytes_total{{{DRIVE}}}[$__rate_interval]))", "drive reads"),
            Query(f"sum(rate(node_disk_written_bytes_total{{{DRIVE}}}[$__rate_interval]))", "drive writes"),
        ],
    )
    yield graph(
        "Schedule debt",
        """How far the client is behind its own schedule; empty for engines without one. Bad: it grows, so the load is
        more than the drives take, or the client has too little CPU.""",
        "s",
        [Query(f"max(cliffwatch_schedule_debt_seconds{{{RUN}}})", "behind")],
    )
    yield graph(
        "Errors",
        "Operations that fail, and requests that the drives fail. Bad: any.",
        "ops",
        [
            Query(f"sum(rate(cliffwatch_errors_total{{{RUN}}}[$__rate_interval]))", "client"),
            Query(
                f"sum by (device, operation) (rate({BLOCK}_errors_total{{{DRIVE}}}[$__rate_interval]))",
                "{{device}} {{operation}}",
            ),
        ],
    )


def drives() -> Iterator[Panel]:
    yield heat(
        "Device latency of $request",
        """Requests by how long the drive had them, from issue to completion. Bad: a second band far above the first:
        the drive does something else in between, such as collecting garbage.""",
        "s",
        Query(
            f"""sum by (le) (increase({BLOCK}_device_latency_seconds_bucket{{{DRIVE}, operation="$request"}}
            [$__rate_interval]))""",
            "{{le}}",
        ),
        repeat="request",
    )
    yield graph(
        "Device latency",
        """How long the drive has a request, by percentile, exact to a factor of two, and the p99 of writes in the run's
        baseline. Bad: p99.9 rises by an order of magnitude while p50 stays: the cliff begins at the tail.""",
        "s",
        [
            *_percentiles(f"{BLOCK}_device_latency_seconds"),
            Query(
                f"max(run_instance_device:block_baseline_write_latency_seconds:p99{{{RUN}, {DRIVE}}})",
                "write p99, baseline",
            ),
        ],
        logarithmic=True,
    )
    yield graph(
        "Queue time",
        """How long a request waits in the kernel before the drive gets it. Bad: it is more than the device latency: the
        drive takes no more, or the I/O scheduler holds requests back.""",
        "s",
        list(_percentiles(f"{BLOCK}_queue_seconds")),
        logarithmic=True,
    )
    yield graph(
        "Where the time goes, p99",
        """The client's p99 above the drive's and the queue's. They do not add up, because each is a percentile of its
        own; what matters is which one rises first. Bad: the client's rises alone: the file system or the client is
        slow, not the drive.""",
        "s",
        [
            Query(_quantile(0.99, "cliffwatch_latency_seconds", RUN, "operation"), "client {{operation}}"),
            Query(_quantile(0.99, f"{BLOCK}_queue_seconds", DRIVE, "operation"), "queue {{operation}}"),
            Query(_quantile(0.99, f"{BLOCK}_device_latency_seconds", DRIVE, "operation"), "drive {{operation}}"),
        ],
        logarithmic=True,
    )
    yield graph(
        "Time per request",
        """Mean time of reads and writes including their wait in the queue, by the kernel's own counters: it is there
        without the block-layer probe too. Bad: a step up at the same load.""",
        "s",
        [
            Query(_per("node_disk_read_time_seconds_total", "node_disk_reads_completed_total"), "{{device}} read"),
            Query(_per("node_disk_write_time_seconds_total", "node_disk_writes_completed_total"), "{{device}} write"),
        ],
        logarithmic=True,
    )
    yield graph(
        "Queue depth",
        """Requests that the drive has at the moment of the scrape, the mean of those in the kernel and the drive, and
        how many the block layer queues at most. Bad: the mean stays at the limit.""",
        "short",
        [
            Query(f"sum by (device, operation) ({BLOCK}_requests_in_flight{{{DRIVE}}})", "{{device}} {{operation}}"),
            Query(
                f"sum by (device) (rate(node_disk_io_time_weighted_seconds_total{{{DRIVE}}}[$__rate_interval]))",
                "{{device}} mean",
            ),
            Query(f"max by (device) (cliffwatch_device_queue_requests{{{RUN}}})", "{{device}} limit"),
        ],
    )
    yield graph(
        "Busy",
        """Share of time in which the drive had at least one request. A drive that works in parallel is not full at
        100 %. Bad: 100 % while throughput falls.""",
        "percentunit",
        [Query(f"sum by (device) (rate(node_disk_io_time_seconds_total{{{DRIVE}}}[$__rate_interval]))", "{{device}}")],
        maximum=1,
    )
    yield graph(
        "Request size",
        """Mean size of the requests that the drive gets, after merging, by the probe and by the kernel's counters. Bad:
        it shrinks at the same load: more requests, more work for the drive's translation layer.""",
        "bytes",
        [
            Query(
                _per(f"{BLOCK}_request_size_bytes_sum", f"{BLOCK}_request_size_bytes_count", "device, operation"),
                "{{device}} {{operation}}",
            ),
            Query(_per("node_disk_written_bytes_total", "node_disk_writes_completed_total"), "{{device}} written"),
        ],
    )


def surroundings() -> Iterator[Panel]:
    yield graph(
        "Free space",
        """Of the file systems that the run fills, its target's and its journal's: now, and when the run ends or soon if
        the trend goes on. Bad: the second line meets zero.""",
        "bytes",
        [
            Query(
                f"""max by (mountpoint) (node_filesystem_avail_bytes{{instance=~"$instance"}})
                and on (mountpoint) cliffwatch_file_system_info{{{RUN}}}""",
                "{{mountpoint}}",
            ),
            Query(
                f"max by (mountpoint) (run_instance_mountpoint:node_filesystem_avail_bytes:predicted{{{RUN}}})",
                "{{mountpoint}} predicted",
            ),
        ],
    )
    yield graph(
        "Who uses the drives",
        """Bytes by the control group that the kernel charges them to: the five largest. Bad: a group that is not the
        run's: a neighbour is measured too.""",
        "Bps",
        [
            Query(
                f"topk(5, sum by (cgroup_id) (rate({BLOCK}_cgroup_bytes_total{{{DRIVE}}}[$__rate_interval])))",
                "group {{cgroup_id}}",
            )
        ],
    )
    yield presence(
        "Watchers",
        "Which targets Prometheus could scrape. Bad: red or nothing: what they measure is missing above, not zero.",
        Query('min by (job) (up{job!="workload"})', "{{job}}"),
    )


def _quantile(quantile: float, histogram: str, selector: str, *labels: str) -> str:
    by = ", ".join(["le", *labels])
    return f"histogram_quantile({quantile}, sum by ({by}) (rate({histogram}_bucket{{{selector}}}[$__rate_interval])))"


def _percentiles(histogram: str) -> Iterator[Query]:
    for name, quantile in QUANTILES.items():
        yield Query(
            _quantile(quantile, histogram, f'{DRIVE}, operation=~"$request"', "operation"), f"{{{{operation}}}} {name}"
        )


def _per(amount: str, count: str, by: str = "device") -> str:
    """A mean; nothing while there is nothing to count."""
    rates = [f"sum by ({by}) (rate({name}{{{DRIVE}}}[$__rate_interval]))" for name in (amount, count)]
    return f"{rates[0]} / ({rates[1]} > 0)"
