"""The dashboard "Layers": where does the time go, from the client down to the drives?"""

from collections.abc import Iterator

from dashboards.builder.colors import LAYERS, READS, WRITES
from dashboards.builder.frame import (
    Document,
    Frame,
    data_link,
    drive_variables,
    put_together,
    requests_variable,
    run_annotations,
    run_variable,
    variable,
)
from dashboards.builder.parts import WHOLE, Panel, Query, graph
from dashboards.builder.promql import BLOCK, DRIVE, RUN, latencies, per, quantile, rate

REQUEST = f'{DRIVE}, operation=~"$request"'
#: Label selectors of the client's chosen operation: latency since it was due, and since it was started.
CLIENT, CLIENT_SERVICE = f'{RUN}, operation="$operation"', f'{RUN}, operation="${{operation}}_service"'
TO_DRIVE = data_link(
    "Drive", "Drive", run="${run}", instance="${__field.labels.instance}", device="${__field.labels.device}"
)


def document() -> Document:
    series = f"{BLOCK}_device_latency_seconds_count{{{DRIVE}}}"
    frame = Frame(
        title="Layers",
        question="Where does the time go: in the client, the broker or file system, the block queue, or the drive?",
        variables=[
            run_variable(),
            *drive_variables(),
            variable(
                "operation",
                "Operation",
                f'cliffwatch_latency_seconds_count{{{RUN}, operation!~".*_service|end_to_end"}}',
                "operation",
            ),
            requests_variable(series),
        ],
        annotations=run_annotations(),
    )
    return put_together(
        frame,
        [
            ("Where the time goes in $run", together),
            ("Client to drives", loads),
            ("File system and host", file_system),
            ("Block queue", queue),
            ("Drives", drives),
        ],
    )


def together() -> Iterator[Panel]:
    yield graph(
        "p99 of each layer",
        """Client by operation, broker by address, block queue and drive by drive, on one axis. Percentiles of layers do
        not add up; what matters is which line leaves first. Bad: the client's alone (client or file system), or the
        drive's before all others (garbage collection). Brokers are there when the workload scrapes them. The histograms
        end at 64 s for the client and at 128 s for queue and drive: a line there is at least that. Empty: no operations
        and no requests in this time.""",
        "s",
        [
            Query(
                quantile(0.99, "cliffwatch_latency_seconds", RUN, "operation"),
                "client {{operation}}",
                color=LAYERS["client"],
                width=2,
            ),
            Query(
                quantile(0.99, "redpanda_kafka_request_latency_seconds", 'redpanda_request="produce"', "instance"),
                "broker {{instance}} produce",
                color=LAYERS["broker"],
            ),
            Query(
                """max by (instance) (kafka_network_requestmetrics_totaltimems{request="Produce", quantile="0.99"})
                / 1000""",
                "broker {{instance}} Produce",
                color=LAYERS["broker"],
            ),
            Query(
                quantile(0.99, f"{BLOCK}_queue_seconds", REQUEST, "instance, device, operation"),
                "queue {{device}} {{operation}}",
                color=LAYERS["queue"],
            ),
            Query(
                quantile(0.99, f"{BLOCK}_device_latency_seconds", REQUEST, "instance, device, operation"),
                "drive {{device}} {{operation}}",
                color=LAYERS["drive"],
                width=2,
            ),
        ],
        logarithmic=True,
        width=WHOLE,
        height=12,
    )
    yield graph(
        "Mean time of an operation and of a request",
        """An operation from when it was due and from its start, and a request below it in the block queue and in the
        drive; choose the operation, and the requests that it causes. They do not add up: an operation may wait for many
        requests, and one request may keep many waiting. Bad: the drive's rises with the operation's, the drive is the
        cause; the operation's alone, it is above the block layer (CPU, locks, page cache, network). Empty: no
        operations and no requests in this time.""",
        "s",
        [
            Query(_mean(CLIENT), "operation, from when it was due", color=LAYERS["client"], width=2),
            Query(_mean(CLIENT_SERVICE), "operation, from its start", color=LAYERS["client"], dashed=True),
            Query(_mean_of_request(f"{BLOCK}_queue_seconds"), "request in the block queue", color=LAYERS["queue"]),
            Query(
                _mean_of_request(f"{BLOCK}_device_latency_seconds"),
                "request in the drive",
                color=LAYERS["drive"],
                width=2,
            ),
        ],
        logarithmic=True,
    )
    yield graph(
        "Share of time with a request outstanding",
        """Of each drive, its queue included. Bad: near 100 % while operations complete at a lower rate: they wait for
        the drive. Near 0 % while operations are slow: they wait above it. Empty: no drive is below the run, or
        node_exporter is down.""",
        "percentunit",
        [Query(rate("node_disk_io_time_seconds_total", DRIVE, "instance, device"), "{{device}}")],
        maximum=1,
        links=[TO_DRIVE],
    )


def loads() -> Iterator[Panel]:
    yield graph(
        "Operations of client and drives",
        """What the client completes, and the reads and writes that each drive completes. Bad: a drive's lines far below
        the client's (the page cache answers), or one drive's line apart from the others'. Empty: no windows, and no
        drive below the run.""",
        "ops",
        [
            Query(rate("cliffwatch_operations_total", RUN), "client", color=LAYERS["client"], width=2),
            Query(rate("node_disk_reads_completed_total", DRIVE, "instance, device"), "{{device}} reads", color=READS),
            Query(
                rate("node_disk_writes_completed_total", DRIVE, "instance, device"), "{{device}} writes", color=WRITES
            ),
        ],
    )
    yield graph(
        "Throughput of client and drives",
        """The same in bytes. Bad: drives that write far more than the client pay for the file system, for replication,
        or for a neighbour. Empty: no windows, and no drive below the run.""",
        "Bps",
        [
            Query(rate("cliffwatch_bytes_total", RUN), "client", color=LAYERS["client"], width=2),
            Query(rate("node_disk_read_bytes_total", DRIVE, "instance, device"), "{{device}} reads", color=READS),
            Query(rate("node_disk_written_bytes_total", DRIVE, "instance, device"), "{{device}} writes", color=WRITES),
        ],
    )
    yield graph(
        "Requests per operation",
        """Requests that the drives complete for each operation that is chosen. Bad: it changes at the same load: the
        file system splits or merges otherwise, or a neighbour came. Empty: no operations in this time, or no probe.""",
        "short",
        [Query(f"{_requests()} / ({_operations()} > 0)", "requests per operation")],
    )
    yield graph(
        "Errors of the drives",
        """Requests that completed with an error, by drive. Bad: any; read the kernel's log. Empty: no request failed
        yet, or no probe.""",
        "ops",
        [
            Query(rate(f"{BLOCK}_errors_total", DRIVE, "instance, device, operation"), "{{device}} {{operation}}"),
        ],
        links=[TO_DRIVE],
    )


def file_system() -> Iterator[Panel]:
    yield graph(
        "Page cache",
        """Bytes that are to be written and that are being written. Bad: dirty bytes climb to a ceiling: writers will be
        made to wait, and latency is the page cache's until then. Empty: node_exporter is down.""",
        "bytes",
        [
            Query('sum by (instance) (node_memory_Dirty_bytes{instance=~"$instance"})', "{{instance}} dirty"),
            Query(
                'sum by (instance) (node_memory_Writeback_bytes{instance=~"$instance"})', "{{instance}} being written"
            ),
        ],
    )
    yield graph(
        "Pressure",
        """Share of the time in which some task of the host waited for I/O, or for a processor. Bad: that for a
        processor rises with the client's latency: the load generator is measured, not the drive. Empty: the kernel
        reports none, or node_exporter is down.""",
        "percentunit",
        [
            Query(
                rate("node_pressure_io_waiting_seconds_total", 'instance=~"$instance"', "instance"),
                "{{instance}} waits for I/O",
            ),
            Query(
                rate("node_pressure_cpu_waiting_seconds_total", 'instance=~"$instance"', "instance"),
                "{{instance}} waits for a processor",
            ),
        ],
    )


def queue() -> Iterator[Panel]:
    yield graph(
        "Queue time",
        """How long a request waits in the kernel before the drive gets it, exact to a factor of two. Bad: more than the
        device latency: the drive takes no more, or the I/O scheduler holds requests back. Empty: no requests in this
        time, or no probe.""",
        "s",
        list(latencies(f"{BLOCK}_queue_seconds", REQUEST, "instance, device, operation", "{{device}} {{operation}}")),
        logarithmic=True,
        links=[TO_DRIVE],
    )
    yield graph(
        "Queue depth",
        """Mean requests outstanding in kernel and drive, those that the drive has at the moment of the scrape, and how
        many the block layer queues at most. Bad: the mean stays at the limit. Empty: no drive is below the run.""",
        "short",
        [
            Query(
                rate("node_disk_io_time_weighted_seconds_total", DRIVE, "instance, device"), "{{device}} mean", width=2
            ),
            Query(
                f"sum by (instance, device, operation) ({BLOCK}_requests_in_flight{{{DRIVE}}})",
                "{{device}} {{operation}} in flight",
            ),
            Query(f"max by (device) (cliffwatch_device_queue_requests{{{RUN}}})", "{{device}} limit", dashed=True),
        ],
    )
    yield graph(
        "Queue in use",
        """Mean requests outstanding as a share of what the block layer queues. Bad: above 90 %, new ones wait outside.
        Empty: no drive is below the run, or its queue has no limit.""",
        "percentunit",
        [
            Query(
                f"max by (instance, device) (run_instance_device:cliffwatch_device_queue:ratio{{{RUN}, {DRIVE}}})",
                "{{device}}",
            )
        ],
        bad_from=0.9,
        links=[TO_DRIVE],
    )


def drives() -> Iterator[Panel]:
    yield graph(
        "Device latency of each drive",
        """How long each drive has a request, exact to a factor of two, and the run's baseline of writes. Bad: p99.9
        rises by an order of magnitude while p50 stays; one drive apart from the others. Empty: no requests in this
        time, or no probe.""",
        "s",
        [
            *latencies(
                f"{BLOCK}_device_latency_seconds", REQUEST, "instance, device, operation", "{{device}} {{operation}}"
            ),
            Query(
                f"""max by (instance, device)
                (run_instance_device:block_baseline_write_latency_seconds:p99{{{RUN}, {DRIVE}}})""",
                "{{device}} write p99, baseline",
                color="green",
                dashed=True,
            ),
        ],
        logarithmic=True,
        links=[TO_DRIVE],
    )
    yield graph(
        "Request size",
        """Mean size of the requests that each drive gets, after merging. Bad: it shrinks at the same load: more
        requests, more work for the drive's translation layer. Empty: no requests in this time, or no probe.""",
        "bytes",
        [
            Query(
                per(
                    f"{BLOCK}_request_size_bytes_sum",
                    f"{BLOCK}_request_size_bytes_count",
                    REQUEST,
                    "instance, device, operation",
                ),
                "{{device}} {{operation}}",
            )
        ],
        links=[TO_DRIVE],
    )
    yield graph(
        "Who writes and reads: bytes",
        """By the control group that the kernel charges them to: the five largest. Bad: a group that is not the run's: a
        neighbour is measured too. Empty: no requests in this time, or no probe.""",
        "Bps",
        [Query(f"topk(5, {rate(f'{BLOCK}_cgroup_bytes_total', DRIVE, 'cgroup_id')})", "group {{cgroup_id}}")],
    )
    yield graph(
        "Who writes and reads: requests",
        """The same in requests. Bad: a group with few bytes and many requests, such as a neighbour's log. Empty: no
        requests in this time, or no probe.""",
        "ops",
        [Query(f"topk(5, {rate(f'{BLOCK}_cgroup_requests_total', DRIVE, 'cgroup_id')})", "group {{cgroup_id}}")],
    )


def _operations() -> str:
    return rate("cliffwatch_latency_seconds_count", CLIENT)


def _requests() -> str:
    return rate(f"{BLOCK}_device_latency_seconds_count", REQUEST)


def _mean(selector: str) -> str:
    seconds, count = (rate(f"cliffwatch_latency_seconds_{part}", selector) for part in ("sum", "count"))
    return f"{seconds} / ({count} > 0)"


def _mean_of_request(histogram: str) -> str:
    seconds, count = (rate(f"{histogram}_{part}", REQUEST) for part in ("sum", "count"))
    return f"{seconds} / ({count} > 0)"
