"""The dashboard "Compare": how do runs differ at the same time since their start?

Prometheus has no axis of elapsed time, so each run is shifted: its values `e` seconds after its start are shown `e`
seconds after ZERO. The clock on the time axis then reads the elapsed time.
"""

from collections.abc import Callable, Iterator

from dashboards.builder.colors import IN_PHASE, LASTS_OR_NOT, VERDICT_COLORS
from dashboards.builder.frame import (
    EVER,
    UIDS,
    WHOLE_VALUE,
    Annotation,
    Document,
    Frame,
    Variable,
    annotation,
    computed,
    data_link,
    put_together,
)
from dashboards.builder.parts import WHOLE, Column, Panel, Query, graph, rows, timeline
from dashboards.builder.promql import QUANTILES, phase_number, worst
from grafana_foundation_sdk.builders import dashboard as grafana
from grafana_foundation_sdk.models import dashboard as models

#: 2000-01-01T00:00:00Z, in seconds since the epoch: midnight, and before any run.
ZERO = 946_684_800
NONE = "none"
#: Variables that hold runs; the others are compared with the first.
SLOTS = ("run", "run_2", "run_3", "run_4")
#: One run, one colour, on every panel.
COLORS = dict(zip(SLOTS, ("blue", "orange", "purple", "green"), strict=True))
#: Seconds of elapsed time that are shown, by the name of the link that chooses them.
SPANS = {"first 10 minutes": 600, "1 h": 3600, "6 h": 6 * 3600, "36 h": 36 * 3600}
LONGEST = SPANS["36 h"]


def document() -> Document:
    frame = Frame(
        title="Compare",
        question="""How do runs differ at the same time since their start? 00:00 on the time axis is where each run's
        load begins.""",
        variables=list(_variables()),
        annotations=[_phases()],
        time=("2000-01-01T00:00:00.000Z", "2000-01-02T12:00:00.000Z"),
        timezone="utc",
        refresh="",
        more_links=[
            _link_to_span("all of the longest run", "${until}"),
            *(_link_to_span(name, str((ZERO + seconds) * 1000)) for name, seconds in SPANS.items()),
        ],
    )
    return put_together(
        frame, [("Which runs", which), ("Client", client), ("Drives", drives), ("Measurement", measurement)]
    )


def _variables() -> Iterator[Variable]:
    """Variables: runs, newest first, operation, percentile; hidden, each run's time shift and the longest run's end.

    None of them may depend on the dashboard's time range, which is not that of any run.
    """
    known = f"max by (run_id) (last_over_time(cliffwatch_run_start_timestamp_seconds{EVER}))"
    none = f'label_replace(vector(1), "run_id", "{NONE}", "", "")'
    yield computed("run", "Run", f"sort_desc({known})", 'run_id="([^"]+)"')
    for place, slot in enumerate(SLOTS[1:], start=2):
        chosen = computed(slot, f"Run {place}", f"sort_desc({known} or {none})", 'run_id="([^"]+)"')
        yield chosen.current(models.VariableOption(True, NONE, NONE))
    for slot in SLOTS:
        start = f'max(last_over_time(cliffwatch_run_start_timestamp_seconds{{run_id="${{{slot}}}"}}{EVER}))'
        moved = computed(f"{slot}_moved", f"{slot}, moved by", f"{start} - {ZERO} or vector(1)", WHOLE_VALUE)
        yield moved.hide(models.VariableHide.HIDE_VARIABLE)
    compared = 'run_id=~"$run|$run_2|$run_3|$run_4"'
    newest, start = (
        f"max by (run_id) (last_over_time(cliffwatch_{name}_timestamp_seconds{{{compared}}}{EVER}))"
        for name in ("last_window", "run_start")
    )
    longest = f"1000 * ({ZERO} + ceil(max({newest} - {start})) or vector({ZERO + LONGEST}))"
    yield computed("until", "Until", longest, WHOLE_VALUE).hide(models.VariableHide.HIDE_VARIABLE)
    operations = f'last_over_time(cliffwatch_window_latency_seconds{{run_id="$run"}}{EVER})'
    yield computed("operation", "Operation", f"group by (operation) ({operations})", 'operation="([^"]+)"').sort(
        models.VariableSort.ALPHABETICAL_ASC
    )
    options = [models.VariableOption(name == "p99", name, str(value)) for name, value in QUANTILES.items()]
    named = ",".join(f"{name} : {value}" for name, value in QUANTILES.items())
    percentile = grafana.CustomVariable("quantile").label("Percentile").values(named).options(options)
    yield percentile.current(models.VariableOption(True, "p99", "0.99"))


def _link_to_span(name: str, until: str) -> grafana.DashboardLink:
    """Link to this dashboard with a range from ZERO to `until` (ms since the epoch); a dashboard cannot set its own."""
    chosen = "&".join(f"${{{each}:queryparam}}" for each in ("datasource", *SLOTS, "operation", "quantile"))
    url = f"/d/{UIDS['Compare']}?{chosen}&from={ZERO * 1000}&to={until}"
    link = grafana.DashboardLink(name).type(models.DashboardLinkType.LINK).icon("dashboard")
    return link.url(url).keep_time(False).include_vars(False).target_blank(False)


def _phases() -> Annotation:
    return annotation(
        "Phases of the first run",
        "blue",
        f'max by (phase) (cliffwatch_run_phase{{run_id="$run"}}{_moved("run")}) == 1',
        title="{{phase}}",
        text="The phase of the first run",
        tag="phase",
    )


def which() -> Iterator[Panel]:
    chosen = 'run_id=~"$run|$run_2|$run_3|$run_4"'
    start = f"last_over_time(cliffwatch_run_start_timestamp_seconds{{{chosen}}}{EVER})"
    newest = f"last_over_time(cliffwatch_last_window_timestamp_seconds{{{chosen}}}{EVER})"
    clock = "from=${__data.fields.Start.numeric}&to=${__data.fields.End.numeric}"
    run = "${__data.fields.run_id}"
    yield rows(
        "Runs that are compared",
        """What each run was, and when. Bad: they differ in more than the one thing that the comparison is about. The
        name leads to the run on its own time. Empty: none of them is known to this Prometheus.""",
        [
            Query(
                f"""max by (run_id, workload, engine, target)
                (last_over_time(cliffwatch_run_info{{{chosen}}}{EVER}))""",
                "run",
            ),
            Query(f"1000 * max by (run_id) ({start})", "start"),
            Query(f"1000 * max by (run_id) ({newest})", "end"),
            Query(f"max by (run_id) ({newest}) - max by (run_id) ({start})", "measured"),
            Query(
                f"""max by (run_id, verdict)
                (last_over_time(cliffwatch_service_run_info{{{chosen}, verdict!=""}}{EVER}))""",
                "verdict",
            ),
            Query(
                f"""max by (run_id, headline)
                (last_over_time(cliffwatch_service_run_headline_info{{{chosen}}}{EVER}))""",
                "why",
            ),
        ],
        [
            Column("run_id", "Run", links=[data_link("Run", "Run", run=run, time=clock)]),
            Column("verdict", "Verdict", colors=VERDICT_COLORS, width=110),
            Column("headline", "Why", width=420),
            Column("workload", "Workload"),
            Column("engine", "Engine"),
            Column("target", "Target"),
            Column(1, "Start", unit="dateTimeAsIso"),
            Column(2, "End", unit="dateTimeAsIso"),
            Column(3, "Length", unit="s"),
        ],
        height=6,
    )
    yield timeline(
        "Phases of the runs",
        """Each run's phases on elapsed time. Bad: soaks that begin at different times: compare within the phases then.
        Empty: none of them is known to this Prometheus.""",
        [Query(phase_number(f'run_id="${{{slot}}}"', _moved(slot)), "{{run_id}}") for slot in SLOTS],
        IN_PHASE,
        named=True,
    )


def client() -> Iterator[Panel]:
    yield graph(
        "Latency of $operation",
        """The percentile that is chosen, exact, of the worst window of each point. Bad: one run leaves the others; the
        time axis says how long after its start. Empty: no windows are kept of these runs at this time.""",
        "s",
        _each_run(_latency),
        logarithmic=True,
        width=WHOLE,
        height=10,
    )
    yield graph(
        "Latency by the first run's",
        """How many times the first run's latency, at the same elapsed time. Bad: above 1 and rising; there is nothing
        to divide by once the first run is over. Empty: no second run is chosen.""",
        "suffix:×",
        [
            Query(f"{_latency(slot)} / on () group_left () {_latency('run')}", "{{run_id}}", color=COLORS[slot])
            for slot in SLOTS[1:]
        ],
        logarithmic=True,
    )
    yield graph(
        "Throughput",
        """Bytes that each run's client moves. Bad: runs that are meant to have the same load have not. Empty: no
        windows are kept of these runs at this time.""",
        "Bps",
        _each_run(lambda slot: _rate("cliffwatch_bytes_total", slot)),
    )
    yield graph(
        "Operations",
        """Operations that each run's client completes. Bad: one run gets less done at the same time. Empty: no windows
        are kept of these runs at this time.""",
        "ops",
        _each_run(lambda slot: _rate("cliffwatch_operations_total", slot)),
    )
    yield graph(
        "Schedule debt of the runs",
        "How far each run's client is behind its own schedule. Bad: one grows. Empty: their engines have no schedule.",
        "s",
        _each_run(lambda slot: _gauge("cliffwatch_schedule_debt_seconds", slot)),
    )


def drives() -> Iterator[Panel]:
    yield graph(
        "Device latency of writes, p99",
        """Of the slowest drive below each run, exact to a factor of two. Bad: one run's drives step up earlier, which
        is what less spare space or another history does. Empty: no drive below them, or no probe.""",
        "s",
        _each_run(lambda slot: _gauge("run_instance_device:block_write_latency_seconds:p99", slot), width=2),
        logarithmic=True,
    )
    yield graph(
        "Write amplification of the runs",
        """Of all drives below each run that count media bytes. Bad: one run's climbs earlier or higher. Empty: no drive
        below them counts media bytes.""",
        "suffix:×",
        _each_run(_amplification),
    )
    yield graph(
        "Free blocks of the runs",
        """Of the drive below each run that has fewest; only drives that report it. Bad: one runs out earlier. Empty: no
        drive below them reports it.""",
        "percentunit",
        _each_run(_free_blocks),
        maximum=1,
    )
    yield graph(
        "Written to the drives since the start",
        """Bytes by the kernel's count, neighbours included. A cliff comes after so many bytes rather than after so
        long. Bad: runs that differ here were not given the same. Empty: no drive is below them.""",
        "bytes",
        _each_run(_written),
    )


def measurement() -> Iterator[Panel]:
    yield timeline(
        "Findings of the runs",
        """Which runs have a finding that lasts, of any kind. Bad: any; the run's own dashboard says which. Empty:
        nothing was searched: they have no baseline.""",
        [
            Query(f'max by (run_id) (cliffwatch_finding_active{{run_id="${{{slot}}}"}}{_moved(slot)})', "{{run_id}}")
            for slot in SLOTS
        ],
        LASTS_OR_NOT,
    )
    yield graph(
        "Errors of the runs",
        """Operations that fail. Bad: any; what fails is not in the latencies. Empty: no windows are kept of these runs
        at this time.""",
        "ops",
        _each_run(lambda slot: _rate("cliffwatch_errors_total", slot)),
    )
    yield graph(
        "Windows measured",
        """Windows in each run's journal. Bad: lines with other slopes have other windows; a flat part is a gap. Empty:
        no windows are kept of these runs at this time.""",
        "short",
        _each_run(lambda slot: _gauge("cliffwatch_journal_windows", slot)),
    )


def _moved(slot: str) -> str:
    """PromQL offset that follows a selector and shifts a run from its start to ZERO."""
    return f" offset -${{{slot}_moved}}s"


def _each_run(expression: Callable[[str], str], width: int | None = None) -> list[Query]:
    return [Query(expression(slot), "{{run_id}}", color=COLORS[slot], width=width) for slot in SLOTS]


def _gauge(name: str, slot: str) -> str:
    return f'max by (run_id) ({name}{{run_id="${{{slot}}}"}}{_moved(slot)})'


def _rate(counter: str, slot: str) -> str:
    return f'sum by (run_id) (rate({counter}{{run_id="${{{slot}}}"}}[$__rate_interval]{_moved(slot)}))'


def _latency(slot: str) -> str:
    selector = f'run_id="${{{slot}}}", operation="$operation", quantile="$quantile"'
    return f"max by (run_id) {worst(f'cliffwatch_window_latency_seconds{{{selector}}}', _moved(slot))}"


def _below(slot: str) -> str:
    """PromQL info metric of the run's drives, with value 1: multiply by it to add the label `run_id`."""
    return f'run_instance_device:cliffwatch_device_info:newest{{run_id="${{{slot}}}"}}{_moved(slot)}'


def _of_drives(series: str, slot: str, how: str = "sum") -> str:
    return f"{how} by (run_id) ({series} * on (instance, device) group_left (run_id) {_below(slot)})"


def _amplification(slot: str) -> str:
    media, host = (
        f"rate(cliffwatch_drive_{side}_written_bytes_total[$__rate_interval]{_moved(slot)})"
        for side in ("media", "host")
    )
    counted = f"{host} and on (instance, device) {media}"
    return f"{_of_drives(media, slot)} / ({_of_drives(f'({counted})', slot)} > 0)"


def _free_blocks(slot: str) -> str:
    return _of_drives(f"cliffwatch_drive_free_blocks_ratio{_moved(slot)}", slot, "min")


def _written(slot: str) -> str:
    counted = "node_disk_written_bytes_total"
    # An exporter may have come up in the first minute of the load only.
    first = f"({counted} @ {ZERO}{_moved(slot)} or min_over_time({counted}[1m] @ {ZERO + 60}{_moved(slot)}))"
    return _of_drives(f"({counted}{_moved(slot)} - {first})", slot)
