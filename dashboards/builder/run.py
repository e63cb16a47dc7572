"""The dashboard "Run": is this run healthy?"""

from collections.abc import Iterator

from dashboards.builder.colors import IN_PHASE, LASTS_OR_NOT, LAYERS
from dashboards.builder.frame import (
    Document,
    Frame,
    drive_variables,
    put_together,
    run_annotations,
    run_variable,
    variable,
)
from dashboards.builder.parts import (
    HALF,
    SMALL_HEIGHT,
    WHOLE,
    Column,
    Panel,
    Query,
    graph,
    heat,
    number,
    rows,
    timeline,
)
from dashboards.builder.promql import (
    RUN,
    UNDER_LOAD,
    phase_number,
    rate,
    shares,
    window_latency,
    worst,
)
from dashboards.builder.run_glance import at_a_glance

OPERATION = f'{RUN}, operation="$operation"'


def document() -> Document:
    latencies = f"cliffwatch_window_latency_seconds{{{RUN}}}"
    frame = Frame(
        title="Run",
        question="Is this run healthy: does it progress, what latency does its client have, and is all of it measured?",
        variables=[
            run_variable(),
            *drive_variables(),
            variable("operation", "Operation", latencies, "operation", several=True, descending=True),
        ],
        annotations=run_annotations(),
    )
    return put_together(
        frame,
        [
            ("At a glance", at_a_glance),
            ("State", state),
            ("Latency", latency),
            ("Rate and errors", rates),
            ("Measurement", measurement),
        ],
    )


def state() -> Iterator[Panel]:
    yield number(
        "Phase",
        """The phase that the run is in. Bad: none before the run is over: it waits, or has lost its worker. Empty: no
        worker runs it.""",
        "none",
        Query(f"max by (phase) (cliffwatch_run_phase{{{RUN}}}) == 1", "{{phase}}"),
        by_name=True,
    )
    yield number(
        "Elapsed",
        """Time since the load began; Compare has it as its time axis. Bad: below zero for long, no load begins. Empty:
        no worker runs it.""",
        "s",
        Query(f"time() - max(cliffwatch_run_start_timestamp_seconds{{{RUN}}})", "elapsed"),
        width=3,
    )
    yield number(
        "Load left",
        """Time until the load is planned to end. Bad: it stays the same while the run is under load. Empty: no worker
        runs it.""",
        "s",
        Query(f"clamp_min(max(cliffwatch_run_end_timestamp_seconds{{{RUN}}}) - time(), 0)", "left"),
        width=3,
    )
    yield number(
        "Progress",
        "Share of the planned load that is over. Bad: it stands still. Empty: no worker runs it.",
        "percentunit",
        Query(f"max(cliffwatch_run_progress_ratio{{{RUN}}})", "progress"),
        decimals=1,
        width=3,
    )
    yield number(
        "Coverage",
        """Share of the load's time up to the newest window that is in the journal, gaps of lost workers included. Bad:
        below 99 %, with which no run passes. Empty: no worker runs it.""",
        "percentunit",
        Query(_coverage(), "coverage"),
        bad_below=0.99,
        decimals=2,
        width=3,
    )
    yield number(
        "Newest window's age",
        """Time since the end of the newest window, in windows. Bad: 3 or more under load, nothing is being measured.
        Empty: not under load.""",
        "suffix: windows",
        Query(_age(), "age"),
        bad_from=3,
        decimals=1,
        width=4,
    )
    yield number(
        "Errors",
        "Operations that failed since the present worker began. Bad: any. Empty: no worker.",
        "short",
        Query(f"max(cliffwatch_errors_total{{{RUN}}})", "errors"),
        bad_from=1,
        decimals=0,
        width=2,
    )
    yield number(
        "Restarts",
        "Times that the present worker started the engine again. Bad: any, each is a gap. Empty: no worker.",
        "short",
        Query(f"max(cliffwatch_engine_restarts_total{{{RUN}}})", "restarts"),
        bad_from=1,
        decimals=0,
        width=2,
    )
    yield timeline(
        "Phases",
        """The phases that the run went through. Bad: a hole, in which no worker executed the run; a baseline that is
        shorter than requested. Empty: no worker ran it in this time.""",
        [Query(phase_number(RUN), "phase")],
        IN_PHASE,
        height=SMALL_HEIGHT,
        named=True,
    )
    yield timeline(
        "Findings",
        """What detection found in the client's latency, and of the work that was not done, for as long as it lasts.
        Bad: any; nothing at all before there is a baseline to compare with, or while the dashboard Watcher shows that
        detection failed. Empty: no baseline yet in this time.""",
        [
            Query(f"max by (kind) (cliffwatch_finding_active{{{RUN}}})", "{{kind}}"),
            Query(f"max by (kind) (cliffwatch_undone_seconds{{{RUN}}}) > bool 0", "{{kind}}"),
        ],
        LASTS_OR_NOT,
    )


def latency() -> Iterator[Panel]:
    baseline = f"cliffwatch_baseline_latency_seconds{{{OPERATION}}}"
    yield graph(
        "Latency of $operation",
        """Exact percentiles of each window from when the operation was due, the worst window of each point; `_service`
        names count from its start. The band is the run's baseline, from its lowest percentile to its highest. Bad: the
        high percentiles leave the band (garbage collection), or all do together (saturation). Empty: no window was
        written in this time.""",
        "s",
        [
            *window_latency(OPERATION),
            Query(f"min({baseline})", "baseline, lowest", color="green", width=0),
            Query(f"max({baseline})", "baseline, highest", color="green", width=0, fill_to="baseline, lowest"),
            Query(
                f"min(cliffwatch_drift_limit_seconds{{{OPERATION}}})", "limit of its drift", color="red", dashed=True
            ),
        ],
        logarithmic=True,
        width=WHOLE,
        height=9,
        repeat="operation",
    )
    yield heat(
        "Distribution of $operation",
        """Operations by how long they took from when they were due, as shares of those of the same time. Bad: a second
        band far above the first: some wait for what the others do not, such as garbage collection. Empty: no operation
        completed in this time.""",
        "s",
        Query(shares("cliffwatch_latency_seconds", OPERATION), "{{le}}"),
        repeat="operation",
    )
    yield graph(
        "How many times the baseline",
        """Latency of the newest windows by the run's baseline, the worst percentile of each operation, over a few
        windows (fast), many (slow), and hours (drift). Bad: it leaves 1 and stays away. Empty: no baseline yet in this
        time.""",
        "suffix:×",
        [
            Query(
                f"max by (operation, span) ({worst(f'cliffwatch_degradation_ratio{{{RUN}}}')})",
                "{{operation}} {{span}}",
            )
        ],
        logarithmic=True,
    )
    yield graph(
        "Size of findings",
        """Of what detection found and what lasts: its level by its baseline, and its worst, as the finding, its alert
        and the report state them. Bad: any; worst far above the level is a cliff that goes on. Empty: nothing was
        found.""",
        "suffix:×",
        [
            Query(f"max by (operation, kind) (cliffwatch_finding_ratio{{{RUN}}})", "{{operation}} {{kind}}"),
            Query(
                f"max by (operation, kind) (cliffwatch_finding_worst_ratio{{{RUN}}})",
                "{{operation}} {{kind}}, worst",
                dashed=True,
            ),
        ],
        logarithmic=True,
    )
    yield rows(
        "Findings that last",
        """What lasts at the end of this time, in the words of its alert and the run's page, with its baseline and
        level. Bad: any. Empty: nothing lasts.""",
        [
            Query(f"max by (operation, kind, sentence) (cliffwatch_finding_info{{{RUN}}})", "finding"),
            Query(f"max by (operation, kind) (cliffwatch_finding_baseline_seconds{{{RUN}}})", "baseline"),
            Query(f"max by (operation, kind) (cliffwatch_finding_level_seconds{{{RUN}}})", "level"),
        ],
        [
            Column("kind", "Kind", width=90),
            Column("operation", "Operation", width=100),
            Column("sentence", "Finding"),
            Column(1, "Baseline", unit="s", width=100),
            Column(2, "Level", unit="s", width=100),
        ],
        width=HALF,
    )
    yield graph(
        "Time until a drift passes its limit",
        """Of latencies that drift: 9 of 10 such forecasts hold between early and late. Bad: likely lies below the load
        that is left, so the run will not end healthy. Empty: nothing drifts.""",
        "s",
        [
            Query(
                f"min by (operation, estimate) (cliffwatch_drift_to_limit_seconds{{{RUN}}}) < Inf",
                "{{operation}} {{estimate}}",
            ),
            Query(
                f"clamp_min(max(cliffwatch_run_end_timestamp_seconds{{{RUN}}}) - time(), 0)",
                "load left",
                color="text",
                dashed=True,
            ),
        ],
    )


def rates() -> Iterator[Panel]:
    yield graph(
        "Operations: target and achieved",
        """The rate that the workload sets, where it sets one, and the rate that the client achieved. Bad: achieved
        falls below target, and the schedule debt grows by the difference. Empty: no window was written in this
        time.""",
        "ops",
        [
            Query(f"max(cliffwatch_requested_operations_per_second{{{RUN}}})", "target", color="text", dashed=True),
            Query(rate("cliffwatch_operations_total", RUN), "achieved", color=LAYERS["client"]),
        ],
    )
    yield graph(
        "Throughput: target and achieved",
        """The same in bytes. Bad: achieved falls while the load is unchanged: an engine without a rate of its own gets
        what the drives take. Empty: no window was written in this time.""",
        "Bps",
        [
            Query(f"max(cliffwatch_requested_bytes_per_second{{{RUN}}})", "target", color="text", dashed=True),
            Query(rate("cliffwatch_bytes_total", RUN), "achieved", color=LAYERS["client"]),
        ],
    )
    yield graph(
        "Schedule debt",
        """How far the client is behind its own schedule. Bad: it grows, so the load is more than the drives take, or
        the client has too little CPU. Empty: the engine has no schedule.""",
        "s",
        [Query(f"max({worst(f'cliffwatch_schedule_debt_seconds{{{RUN}}}')})", "behind")],
    )
    yield graph(
        "Age of the oldest operation",
        """How long the oldest operation that is not completed had been due at the end of each window. Bad: longer than
        a window, while throughput is zero: the target has stalled. Empty: the engine cannot know.""",
        "s",
        [Query(f"max({worst(f'cliffwatch_oldest_outstanding_seconds{{{RUN}}}')})", "oldest")],
    )
    yield graph(
        "Backlog",
        """What was acknowledged and not read yet. Bad: it grows outside a pause that the workload asks for: consumers
        cannot keep up, and will soon read from the drives. Empty: the engine has no consumers.""",
        "short",
        [
            Query(f"max({worst(f'cliffwatch_backlog_records{{{RUN}}}')})", "records"),
            Query(f"max({worst(f'cliffwatch_backlog_bytes{{{RUN}}}')})", "bytes", unit="bytes"),
        ],
    )
    yield graph(
        "Errors",
        """Operations that fail, and their share of all. Bad: any. What the drives fail is on the dashboard Layers.
        Empty: no window was written in this time.""",
        "ops",
        [
            Query(rate("cliffwatch_errors_total", RUN), "failed"),
            Query(f"max(run:cliffwatch_errors_per_operation:ratio_rate{{{RUN}}})", "share", unit="percentunit"),
        ],
    )
    yield graph(
        "Free space",
        """Of the file systems that the run fills, its target's and its journal's: now, and when the run ends or soon if
        the trend goes on. What the load may still take is reported by engines that delete. Bad: the predicted line
        meets zero. Empty: the run fills no file system, or node_exporter is down.""",
        "bytes",
        [
            Query(
                f"""max by (mountpoint) (node_filesystem_avail_bytes
                and on (instance, mountpoint) run_instance_mountpoint:cliffwatch_file_system_info:max{{{RUN}}})""",
                "{{mountpoint}}",
            ),
            Query(
                f"max by (mountpoint) (run_instance_mountpoint:node_filesystem_avail_bytes:predicted{{{RUN}}})",
                "{{mountpoint}} predicted",
                dashed=True,
            ),
            Query(f"max(cliffwatch_growth_left_bytes{{{RUN}}})", "what the load may still take", color="text"),
        ],
    )


def measurement() -> Iterator[Panel]:
    yield graph(
        "Gaps",
        """Age of the newest window, in windows: it climbs to about 2 and falls back, once a window. Bad: 3 or more, or
        a hole in the line: that time is not measured, and is a gap in the journal. Empty: no window was written in this
        time.""",
        "suffix: windows",
        [Query(_age(), "newest window's age")],
        bad_from=3,
    )
    yield graph(
        "Windows in the journal",
        """Windows that were put on disk, by all workers of the run, and those that should be there by now. Bad: the
        lines part, and stay apart: that many windows are missing. Empty: no window was written in this time.""",
        "short",
        [
            Query(f"max(cliffwatch_journal_windows{{{RUN}}})", "on disk", color=LAYERS["client"]),
            Query(
                f"floor({_seconds_up_to_newest()} / max(cliffwatch_run_window_seconds{{{RUN}}}) + 0.5)",
                "due",
                dashed=True,
            ),
        ],
    )


def _age() -> str:
    newest = f"max(cliffwatch_last_window_timestamp_seconds{{{RUN}}})"
    under_load = f"max(cliffwatch_run_phase{{{RUN}, {UNDER_LOAD}}}) == 1"
    return f"(time() - {newest}) / max(cliffwatch_run_window_seconds{{{RUN}}}) and on () ({under_load})"


def _seconds_up_to_newest() -> str:
    newest = f"max(cliffwatch_last_window_timestamp_seconds{{{RUN}}})"
    return f"({newest} - max(cliffwatch_run_start_timestamp_seconds{{{RUN}}}))"


def _coverage() -> str:
    measured = f"max(cliffwatch_journal_windows{{{RUN}}}) * max(cliffwatch_run_window_seconds{{{RUN}}})"
    return f"{measured} / {_seconds_up_to_newest()}"
