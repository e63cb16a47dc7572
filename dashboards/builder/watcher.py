"""The dashboard "Watcher": can what is shown be believed, and what does the watching cost?"""

from collections.abc import Iterator

from dashboards.builder.colors import UP_OR_DOWN
from dashboards.builder.frame import Document, Frame, annotation, data_link, put_together
from dashboards.builder.parts import THIRD, Panel, Query, graph, number, timeline
from dashboards.builder.promql import BLOCK, UNDER_LOAD, quantile, rate

DRIVE = "cliffwatch_drive"
SERVICE = "cliffwatch_service"
#: Scrape interval of the service, Prometheus and Alertmanager, which change slowly.
SLOWLY = "10s"
TO_RUN = data_link("Run", "Run", run="${__field.labels.run_id}")


def document() -> Document:
    frame = Frame(
        title="Watcher",
        question="Can what the other dashboards show be believed, and what does the watching itself cost?",
        variables=[],
        annotations=[
            annotation(
                "Alerts about watchers",
                "red",
                'max by (alertname, severity, job) (ALERTS{alertstate="firing", severity!="info", layer="watcher"})',
                title="{{alertname}}",
                text="{{severity}} {{job}}",
                tag="severity",
            )
        ],
        time=("now-1h", "now"),
    )
    return put_together(
        frame,
        [
            ("Scrapes", scrapes),
            ("Cost", cost),
            ("Runs", runs),
            ("Service", service),
            ("Exporters", exporters),
            ("Prometheus and Alertmanager", stores),
        ],
    )


def scrapes() -> Iterator[Panel]:
    yield timeline(
        "Watchers",
        """Which targets Prometheus could scrape, the worst of each job; of workers, which come and go with their runs,
        the best. Bad: red or a hole: what they measure is missing on the other dashboards, not zero. Empty: nothing was
        scraped in this time.""",
        [
            Query(
                """min by (job) (up{job!="cliffwatch-worker"})
                or max by (job) (up{job="cliffwatch-worker"} == 1)""",
                "{{job}}",
            )
        ],
        UP_OR_DOWN,
        height=8,
    )
    yield graph(
        "Scrape duration",
        """How long the slowest target of each job takes to answer. Bad: 0.5 s or more; at an interval of 1 s scrapes
        will begin to fail. Empty: nothing was scraped in this time.""",
        "s",
        [Query("max by (job) (scrape_duration_seconds)", "{{job}}")],
        bad_from=0.5,
    )
    yield graph(
        "Samples of a scrape",
        """What the targets of each job answer with together. Bad: it grows all the time: some label is without bounds.
        Empty: nothing was scraped in this time.""",
        "short",
        [Query("sum by (job) (scrape_samples_scraped)", "{{job}}")],
    )


def cost() -> Iterator[Panel]:
    yield graph(
        "Monitoring overhead: processors",
        """Processors that each job's processes keep busy; `cliffwatch-worker` is the workers without their engines.
        Bad: together more than a few hundredths: monitoring changes what it measures. Empty: nothing was scraped in
        this time.""",
        "short",
        [
            Query(rate("process_cpu_seconds_total", 'job!="workload"', "job"), "{{job}}"),
            Query(f"sum(rate({DRIVE}_exporter_commands_cpu_seconds_total[$__rate_interval]))", "drive: nvme-cli"),
        ],
        scraped_every=SLOWLY,
    )
    yield graph(
        "Monitoring overhead: memory",
        """Resident memory of each job's processes. Bad: it grows from hour to hour: a leak would end a long run. Empty:
        nothing was scraped in this time.""",
        "bytes",
        [Query('sum by (job) (process_resident_memory_bytes{job!="workload"})', "{{job}}")],
    )
    yield graph(
        "Open files",
        "Of each job's processes. Bad: it grows from hour to hour. Empty: nothing was scraped in this time.",
        "short",
        [Query('sum by (job) (process_open_fds{job!="workload"})', "{{job}}")],
    )
    yield graph(
        "Processes started to ask drives",
        """Calls of nvme-cli. Bad: more than a few every 10 s and drive: each wakes the drive's controller. Empty: the
        drive exporter is down.""",
        "ops",
        [Query(f"sum(rate({DRIVE}_exporter_commands_total[$__rate_interval]))", "nvme-cli")],
    )


def runs() -> Iterator[Panel]:
    yield graph(
        "Windows written",
        """Windows put on disk by the workers, in windows that should be written in that time: 1 is all of them. Bad:
        less for longer than a restart takes. Empty: no run in this time.""",
        "percentunit",
        [
            Query(
                """sum by (run_id) (rate(cliffwatch_windows_total[$__rate_interval]))
                * max by (run_id) (cliffwatch_run_window_seconds)""",
                "{{run_id}}",
            )
        ],
        links=[TO_RUN],
    )
    yield graph(
        "Age of each run's newest window",
        "In windows of that run, while it is under load. Bad: 3 or more. Empty: no run under load in this time.",
        "suffix: windows",
        [
            Query(
                f"""(time() - max by (run_id) (cliffwatch_last_window_timestamp_seconds))
                / max by (run_id) (cliffwatch_run_window_seconds)
                and on (run_id) (max by (run_id) (cliffwatch_run_phase{{{UNDER_LOAD}}}) == 1)""",
                "{{run_id}}",
            )
        ],
        bad_from=3,
        links=[TO_RUN],
    )
    yield timeline(
        "Detection",
        """Whether each run's windows are searched for findings. Bad: red: that run's silence means nothing. Empty: no
        run in this time.""",
        [Query("min by (run_id) (cliffwatch_detection_running)", "{{run_id}}")],
        UP_OR_DOWN,
        links=[TO_RUN],
    )


def service() -> Iterator[Panel]:
    yield number(
        "Version",
        """The service's version. Bad: two: an old one still answers. Empty: the
        service is down.""",
        "none",
        Query(f"max by (version) ({SERVICE}_build_info)", "{{version}}"),
        by_name=True,
        width=3,
    )
    yield number(
        "Address",
        """Where people reach the service's pages; links lead there. Bad: not where you reach them: set its public URL.
        Empty: the service is down.""",
        "none",
        Query(f"max by (url) ({SERVICE}_address_info)", "{{url}}"),
        by_name=True,
        width=6,
    )
    yield number(
        "Scheduler",
        """Whether the scheduler runs and holds its lock. Bad: no; nothing is queued by schedule. Empty: the service is
        down.""",
        "bool_yes_no",
        Query(f"min({SERVICE}_scheduler_running)", "runs"),
        bad_below=1,
        width=3,
    )
    yield number(
        "Watchdog heard",
        """Time since the alert that always fires last reached the service; it comes every minute. Bad: more than 5
        minutes: silence means a broken chain of alerts. Empty: it never came.""",
        "s",
        Query(f"time() - max({SERVICE}_watchdog_timestamp_seconds)", "heard"),
        bad_from=300,
        width=3,
    )
    yield number(
        "Alerts left out",
        """Alerts that were not recorded, since their run has 2,000 already. Bad: any: a rule fires again and again.
        Empty: the service is down.""",
        "short",
        Query(f'sum({SERVICE}_alerts_total{{outcome="left_out"}})', "left out"),
        bad_from=1,
        decimals=0,
        width=3,
    )
    yield number(
        "Index lag",
        """Bytes of unfinished runs' events that the index has not read. Bad: it stays above 0: the index is behind.
        Empty: the service is down.""",
        "bytes",
        Query(f"max({SERVICE}_journal_index_lag_bytes)", "lag"),
        width=3,
    )
    yield number(
        "Requests failed",
        """Requests that the service answered with 5xx since it started. Bad: any; its log says why. Empty: the service
        is down.""",
        "short",
        Query(f'sum({SERVICE}_http_requests_total{{status="5xx"}})', "failed"),
        bad_from=1,
        decimals=0,
        width=3,
    )
    yield timeline(
        "Watchers as the service sees them",
        """Whether each watcher of the stack answers the service. Bad: red; a run's journal says from when to when.
        Empty: the service is down.""",
        [Query(f"min by (watcher) ({SERVICE}_watcher_up)", "{{watcher}}")],
        UP_OR_DOWN,
    )
    yield graph(
        "Requests answered by the service",
        "By class of status. Bad: 5xx; 4xx of a client that should know better. Empty: the service is down.",
        "reqps",
        [Query(rate(f"{SERVICE}_http_requests_total", "", "status"), "{{status}}")],
        width=THIRD,
        scraped_every=SLOWLY,
    )
    yield graph(
        "Request duration, p99",
        """By method and route, exact to a factor of three. Bad: more than 1 s, but for the live stream, which lasts.
        Empty: the service is down.""",
        "s",
        [
            Query(
                quantile(0.99, f"{SERVICE}_http_request_duration_seconds", "", "method, route"),
                "{{method}} {{route}}",
                width=2,
            )
        ],
        logarithmic=True,
        width=THIRD,
        scraped_every=SLOWLY,
    )
    yield graph(
        "Alerts received",
        """By what became of them: recorded in a run's journal, repeated, left out of a journal that has as many as it
        may, or of no run. Bad: left out grows. Empty: the service is down.""",
        "short",
        [Query(f"sum by (outcome) ({SERVICE}_alerts_total)", "{{outcome}}")],
        width=THIRD,
    )


def exporters() -> Iterator[Panel]:
    yield graph(
        "What the probe missed",
        """Requests whose completion the kernel did not report, and requests to more drives than are kept apart, as
        shares of all. Bad: one in a hundred or more: latencies are of fewer requests than there were. Empty: no
        requests in this time, or no probe.""",
        "percentunit",
        [
            Query(
                _share_of_requests(rate(f"{BLOCK}_missed_completions_total", "", "device"), "device"),
                "{{device}} missed",
            ),
            Query(_share_of_requests(f"sum(rate({BLOCK}_untracked_requests_total[$__rate_interval]))"), "untracked"),
        ],
        bad_from=0.01,
        width=THIRD,
    )
    yield graph(
        "Questions to NVMe drives",
        """How often each drive is asked, and how often it does not answer. Bad: any without an answer. Empty: no NVMe
        drive.""",
        "ops",
        [
            Query(rate(f"{DRIVE}_polls_total", "", "device"), "{{device}} asked"),
            Query(rate(f"{DRIVE}_poll_errors_total", "", "device"), "{{device}} without an answer"),
        ],
        width=THIRD,
    )
    yield graph(
        "How long NVMe drives take to answer",
        """The last questions to each drive, and the age of its last answer. Bad: seconds; an age above 20 s. Empty: no
        NVMe drive.""",
        "s",
        [
            Query(f"max by (device) ({DRIVE}_poll_duration_seconds)", "{{device}} took"),
            Query(f"time() - max by (device) ({DRIVE}_last_poll_timestamp_seconds)", "{{device}} last answered"),
        ],
        logarithmic=True,
        width=THIRD,
    )


def stores() -> Iterator[Panel]:
    yield graph(
        "Series and samples",
        """Series in Prometheus' head, and samples that it takes a second. Bad: series climb without new runs. Empty:
        Prometheus does not scrape itself.""",
        "short",
        [
            Query("max by (instance) (prometheus_tsdb_head_series)", "series"),
            Query(rate("prometheus_tsdb_head_samples_appended_total", ""), "samples a second", unit="short"),
        ],
        width=THIRD,
        scraped_every=SLOWLY,
    )
    yield graph(
        "Size on disk",
        """Of what Prometheus keeps, without the last two hours. Bad: near the size that it is limited to. Empty:
        Prometheus does not scrape itself.""",
        "bytes",
        [Query("max by (instance) (prometheus_tsdb_storage_blocks_bytes)", "blocks")],
        width=THIRD,
    )
    yield graph(
        "Evaluation of rules",
        """How long each group takes, as a share of its interval. Bad: above 1, alerts come late or not at all. Empty:
        Prometheus does not scrape itself.""",
        "percentunit",
        [
            Query(
                """max by (rule_group) (prometheus_rule_group_last_duration_seconds)
                / max by (rule_group) (prometheus_rule_group_interval_seconds)""",
                "{{rule_group}}",
            )
        ],
        bad_from=1,
        width=THIRD,
    )
    yield graph(
        "What went wrong",
        """Rules that could not be evaluated, and notifications that did not reach Alertmanager or went no further from
        there. Bad: any: alerts are missing. Empty: Prometheus does not scrape itself.""",
        "ops",
        [
            Query(rate("prometheus_rule_evaluation_failures_total", ""), "evaluations failed"),
            Query(rate("prometheus_notifications_errors_total", ""), "not delivered to Alertmanager"),
            Query(rate("prometheus_notifications_dropped_total", ""), "dropped by Prometheus"),
            Query(rate("alertmanager_notifications_failed_total", "", "integration"), "{{integration}} failed"),
        ],
        scraped_every=SLOWLY,
    )
    yield timeline(
        "Configurations",
        """Whether the last reload was taken. Bad: red; the configuration before it is still in force. Empty: Prometheus
        does not scrape itself.""",
        [
            Query("min(prometheus_config_last_reload_successful)", "Prometheus"),
            Query("min(alertmanager_config_last_reload_successful)", "Alertmanager"),
        ],
        UP_OR_DOWN,
        width=12,
        height=8,
    )


def _share_of_requests(counted: str, by: str = "") -> str:
    """`counted` as a share of all requests that the probe saw complete; no value while there are none."""
    return f"{counted} / ({rate(f'{BLOCK}_device_latency_seconds_count', '', by)} > 0)"
