"""The dashboard "Runs": what is running, what ran, and what comes next?"""

from collections.abc import Iterator

from dashboards.builder.colors import IN_PHASE, VERDICT_COLORS
from dashboards.builder.compare import ZERO
from dashboards.builder.frame import Document, Frame, annotation, data_link, page_link, put_together, service_variable
from dashboards.builder.parts import WHOLE, Column, Panel, Query, graph, number, rows, timeline
from dashboards.builder.promql import phase_number, rate, worst

_RUN_ID = "${__data.fields.run_id}"
_FROM_START = "from=${__data.fields.Start.numeric}"
TO_LIVE_RUN = data_link("Run", "Run", run=_RUN_ID, time=f"{_FROM_START}&to=now")
TO_ENDED_RUN = data_link("Run", "Run", run=_RUN_ID, time=f"{_FROM_START}&to=${{__data.fields.End.numeric}}")
TO_LAYERS = data_link("Layers", "Layers", run=_RUN_ID, time=f"{_FROM_START}&to=${{__data.fields.End.numeric}}")
#: The comparison's time axis begins at ZERO; the hidden column Until is where the run's load ends on it.
TO_COMPARISON = data_link(
    "Compare with others", "Compare", run=_RUN_ID, time=f"from={ZERO * 1000}&to=${{__data.fields.Until.numeric}}"
)
TO_RUNBOOK = page_link("What to do", f"/runbooks/${{__data.fields.alertname}}?run_id={_RUN_ID}")
TO_PAGE = page_link("Its page", f"/runs/{_RUN_ID}")
TO_REPORT = page_link("Report", f"/runs/{_RUN_ID}/report")
TO_RUN_OF_LINE = data_link("Run", "Run", run="${__field.labels.run_id}")


def document() -> Document:
    frame = Frame(
        title="Runs",
        question="What is running, what ran and how did it end, and what comes next?",
        variables=[service_variable()],
        annotations=[
            annotation(
                "Alerts",
                "red",
                'max by (alertname, severity, run_id) (ALERTS{alertstate="firing", severity!="info"})',
                title="{{alertname}}",
                text="{{severity}} {{run_id}}",
                tag="severity",
            )
        ],
        time=("now-6h", "now"),
        refresh="30s",
    )
    return put_together(frame, [("Now", now), ("Over time", over_time), ("Past and future", past_and_future)])


def now() -> Iterator[Panel]:
    yield number(
        "Running",
        "Runs that a worker executes at the moment. Bad: none, while some are queued. Empty: the service is down.",
        "short",
        Query('sum(cliffwatch_service_runs{state=~"starting|running|stopping|reporting"})', "running"),
        width=3,
    )
    yield number(
        "Queued",
        "Runs that wait for their target to be free. Bad: they wait while nothing runs. Empty: the service is down.",
        "short",
        Query('sum(cliffwatch_service_runs{state="queued"})', "queued"),
        width=3,
    )
    yield number(
        "Interrupted",
        """Runs that lost their worker and are not resumed yet. Bad: any for longer than some seconds. Empty: the
        service is down.""",
        "short",
        Query('sum(cliffwatch_service_runs{state="interrupted"})', "interrupted"),
        bad_from=1,
        width=3,
    )
    yield number(
        "Findings that last",
        "Kinds of findings in live runs that are not over, by operation. Bad: any. Empty: no live run.",
        "short",
        Query("sum(max by (run_id, kind, operation) (cliffwatch_finding_active))", "findings"),
        bad_from=1,
    )
    yield number(
        "Alerts firing",
        "Alerts that are more than information. Bad: any; the table below has them. Empty: Prometheus is down.",
        "short",
        Query('count(ALERTS{alertstate="firing", severity!="info"}) or vector(0)', "alerts"),
        bad_from=1,
    )
    yield number(
        "Missed or failed schedules",
        """Fire times of the present schedules that queued no run, since records began. Bad: it grows. Empty: no
        schedule.""",
        "short",
        Query('sum(cliffwatch_service_schedule_firings{outcome=~"missed|failed"})', "missed"),
        bad_from=1,
    )
    yield number(
        "Deleted within an hour",
        """Finished runs that retention is about to move to the trash, where they are for a day; pin those that are to
        stay. Bad: more than expected. Empty: the service is down.""",
        "short",
        Query("sum(cliffwatch_service_retention_announced_runs)", "runs"),
        width=3,
    )
    yield rows(
        "Alerts that fire",
        """All that are more than information, with the run or the watcher that they are about. Bad: any. Empty: no
        alert fires.""",
        [
            Query(
                """max by (alertname, severity, layer, run_id, device, job)
                (ALERTS{alertstate="firing", severity!="info"})""",
                "alert",
            )
        ],
        [
            Column("alertname", "Alert", links=[TO_RUNBOOK]),
            Column("severity", "Severity", colors={"critical": "red", "warning": "orange"}, width=100),
            Column("layer", "Layer", width=100),
            Column("run_id", "Run", links=[data_link("Run", "Run", run=_RUN_ID)]),
            Column("device", "Drive", width=120),
            Column("job", "Watcher", width=160),
        ],
        sort=("Severity", False),
        width=WHOLE,
    )
    yield rows(
        "Live runs",
        """Runs that have a worker. The last columns: latency of the newest windows by the run's own baseline, and kinds
        of findings that last. Bad: far more than 1, and any finding. The run's name leads to its dashboard. Empty: no
        run is live.""",
        [
            Query("max by (run_id, workload, engine, target) (cliffwatch_run_info)", "run"),
            Query("max by (run_id, phase) (cliffwatch_run_phase) == 1", "phase"),
            Query("max by (run_id) (cliffwatch_run_progress_ratio)", "progress"),
            Query("1000 * max by (run_id) (cliffwatch_run_start_timestamp_seconds)", "start"),
            Query("1000 * max by (run_id) (cliffwatch_run_end_timestamp_seconds)", "planned end"),
            Query('max by (run_id) (cliffwatch_degradation_ratio{span="fast"})', "by baseline"),
            Query("sum by (run_id) (max by (run_id, kind) (cliffwatch_finding_active))", "findings"),
            Query(
                f"""1000 * ({ZERO} + ceil(time() - max by (run_id) (cliffwatch_run_start_timestamp_seconds)))""",
                "until",
            ),
        ],
        [
            Column("run_id", "Run", links=[TO_LIVE_RUN, TO_COMPARISON, TO_PAGE], width=220),
            Column("workload", "Workload"),
            Column("engine", "Engine", width=100),
            Column("target", "Target"),
            Column("phase", "Phase", width=100),
            Column(2, "Progress", unit="percentunit", decimals=1, width=90),
            Column(3, "Start", unit="dateTimeAsIso", width=170),
            Column(4, "Planned end", unit="dateTimeAsIso", width=170),
            Column(5, "By baseline", unit="suffix:×", decimals=2, width=110),
            Column(6, "Findings", unit="short", width=90),
            Column(7, "Until", hidden=True),
        ],
        sort=("Start", True),
    )


def over_time() -> Iterator[Panel]:
    yield timeline(
        "What ran when",
        """Each run's phases. Bad: a hole in a bar, in which no worker executed that run; bars that overlap on one
        machine, since runs on different drives still share its processors. Empty: no run in this time.""",
        [Query(phase_number(""), "{{run_id}}")],
        IN_PHASE,
        height=8,
        named=True,
        links=[TO_RUN_OF_LINE],
    )
    yield graph(
        "p99 of each run",
        """Exact p99 of each run's operations from when they were due, the worst operation and the worst window of each
        point. Bad: a line that leaves its level. Empty: no run in this time.""",
        "s",
        [
            Query(
                "max by (run_id) "
                + worst('cliffwatch_window_latency_seconds{quantile="0.99", operation!~".*_service"}'),
                "{{run_id}}",
                width=2,
            )
        ],
        logarithmic=True,
        links=[TO_RUN_OF_LINE],
    )
    yield graph(
        "Throughput of each run",
        "Bytes that each run's client moves. Bad: it sags without a change of phase. Empty: no run in this time.",
        "Bps",
        [Query(rate("cliffwatch_bytes_total", "", "run_id"), "{{run_id}}")],
        links=[TO_RUN_OF_LINE],
    )


def past_and_future() -> Iterator[Panel]:
    yield rows(
        "Newest runs and their verdicts",
        """The 100 newest runs that the service knows, also those that Prometheus has forgotten. Bad: degraded (the
        drive or the broker got worse), invalid (the measurement cannot be trusted), failed. Empty: no run yet.""",
        [
            Query(
                "max by (run_id, workload, engine, target, state, verdict) (cliffwatch_service_run_info)",
                "run",
            ),
            Query("1000 * max by (run_id) (cliffwatch_service_run_start_timestamp_seconds)", "start"),
            Query("1000 * max by (run_id) (cliffwatch_service_run_finish_timestamp_seconds)", "end"),
            Query("max by (run_id, headline) (cliffwatch_service_run_headline_info)", "why"),
            Query(
                """max by (run_id) (cliffwatch_service_run_finish_timestamp_seconds)
                - max by (run_id) (cliffwatch_service_run_start_timestamp_seconds)""",
                "duration",
            ),
            Query(
                f"""1000 * ({ZERO} + ceil(max by (run_id) (cliffwatch_service_run_finish_timestamp_seconds)
                - max by (run_id) (cliffwatch_service_run_start_timestamp_seconds)))""",
                "until",
            ),
        ],
        [
            Column("run_id", "Run", links=[TO_ENDED_RUN, TO_LAYERS, TO_COMPARISON, TO_REPORT, TO_PAGE], width=220),
            Column("verdict", "Verdict", colors=VERDICT_COLORS, width=110),
            Column("state", "State", width=110),
            Column("headline", "Why", width=420),
            Column("workload", "Workload"),
            Column("engine", "Engine", width=100),
            Column("target", "Target"),
            Column(1, "Start", unit="dateTimeAsIso", width=170),
            Column(2, "End", unit="dateTimeAsIso", width=170),
            Column(4, "Duration", unit="dtdurations", width=130),
            Column(5, "Until", hidden=True),
        ],
        sort=("Start", True),
        height=12,
    )
    yield rows(
        "Next runs by schedule",
        """When each schedule fires next. Bad: one that should fire is not here: it is disabled, or has no time left.
        Empty: no schedule will fire.""",
        [Query("1000 * max by (schedule) (cliffwatch_service_schedule_next_timestamp_seconds)", "next")],
        [Column("schedule", "Schedule"), Column(0, "Next", unit="dateTimeAsIso", width=200)],
        sort=("Next", False),
        width=8,
    )
    yield graph(
        "Schedules and what came of them",
        """Schedules that may fire and that may not, and fire times by outcome. Bad: missed (the service was down) or
        failed (the run was refused) grows. Empty: the service is down.""",
        "short",
        [
            Query("sum by (enabled) (cliffwatch_service_schedules)", "schedules, enabled: {{enabled}}"),
            Query("sum by (outcome) (cliffwatch_service_schedule_firings)", "fired: {{outcome}}"),
        ],
        width=8,
    )
    yield graph(
        "Runs by state",
        "Runs in the service's index. Bad: interrupted stays; queued only grows. Empty: no run yet.",
        "short",
        [Query("sum by (state) (cliffwatch_service_runs) > 0", "{{state}}")],
        width=8,
    )
