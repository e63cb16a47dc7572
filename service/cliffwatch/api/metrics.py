"""/metrics: the service's own Prometheus metrics, made for each scrape. A run's metrics are served by its worker."""

from collections.abc import Iterator
from pathlib import Path

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from sqlalchemy.orm import Session

from cliffwatch.app.scheduler import FAILED, MISSED, QUEUED
from cliffwatch.app.stored_figures import stored_figures
from cliffwatch.base.units import format_latency
from cliffwatch.base.version import VERSION
from cliffwatch.http.context import Context, Services
from cliffwatch.journal import files
from cliffwatch.model.target import parse_targets, shown_targets
from cliffwatch.store.models import RunRow
from cliffwatch.store.queries import (
    count_firings,
    count_runs_by_state,
    count_schedules,
    next_fire_times,
    runs_page,
    unfinished_runs,
)

router = APIRouter(tags=["health"])
_PREFIX = "cliffwatch_service_"
#: Number of newest runs that are exported one by one; the others are only in the index.
NEWEST_RUNS = 100
#: Maximum length of the value of the label `headline`, which is a sentence.
HEADLINE_CHARACTERS = 300


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def metrics(services: Context) -> Response:
    """Metrics of the service and of its process, in the Prometheus text format."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(ServiceCollector(services))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class ServiceCollector(Collector):
    """Collector of the service's metrics for one scrape."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def collect(self) -> Iterator[Metric]:
        build = GaugeMetricFamily(f"{_PREFIX}build_info", "The service's version.", labels=["version"])
        build.add_metric([VERSION], 1)
        yield build
        address = GaugeMetricFamily(f"{_PREFIX}address_info", "Where people reach the pages.", labels=["url"])
        address.add_metric([self._services.settings.public_url], 1)
        yield address
        yield GaugeMetricFamily(
            f"{_PREFIX}scheduler_running",
            "Whether the scheduler runs and holds its lock.",
            value=float(self._services.scheduler.is_running),
        )
        with self._services.database.snapshot() as session:
            yield from _run_metrics(session)
            yield GaugeMetricFamily(
                f"{_PREFIX}retention_announced_runs",
                "Finished runs whose deletion by retention was announced in the log.",
                value=len(self._services.retention.announced),
            )
            yield from _newest_runs(session)
            yield from _schedule_metrics(session)
        yield from _alert_metrics(self._services)
        yield from self._services.http.collect()


def _run_metrics(session: Session) -> Iterator[Metric]:
    runs = GaugeMetricFamily(f"{_PREFIX}runs", "Runs in the index, by state.", labels=["state"])
    for state, count in count_runs_by_state(session).items():
        runs.add_metric([state], count)
    yield runs
    yield GaugeMetricFamily(
        f"{_PREFIX}journal_index_lag_bytes",
        "Bytes of unfinished runs' events that the index has not read yet.",
        value=sum(_lag_bytes(row) for row in unfinished_runs(session)),
    )


def _newest_runs(session: Session) -> Iterator[Metric]:
    info = GaugeMetricFamily(
        f"{_PREFIX}run_info",
        f"One of the {NEWEST_RUNS} newest runs; always 1.",
        labels=["run_id", "workload", "engine", "target", "state", "verdict"],
    )
    started = GaugeMetricFamily(
        f"{_PREFIX}run_start_timestamp_seconds",
        "When that run's load began, or will begin, in seconds since the epoch; absent until it is planned.",
        labels=["run_id"],
    )
    finished = GaugeMetricFamily(
        f"{_PREFIX}run_finish_timestamp_seconds",
        "When that run had its verdict, in seconds since the epoch; absent until it has, and for a look back.",
        labels=["run_id"],
    )
    headline = GaugeMetricFamily(
        f"{_PREFIX}run_headline_info",
        "First sentence of that run's verdict, and its p99; always 1; absent until it has one.",
        labels=["run_id", "headline", "p99"],
    )
    for row in runs_page(session, NEWEST_RUNS):
        if row.verdict is not None and row.reasons:
            headline.add_metric([row.id, str(row.reasons[0])[:HEADLINE_CHARACTERS], _p99(row)], 1)
        info.add_metric(
            [
                row.id,
                row.workload_name,
                row.engine,
                shown_targets(parse_targets(row.target)),
                row.state,
                row.verdict or "",
            ],
            1,
        )
        if row.load_start is not None:
            started.add_metric([row.id], row.load_start)
        # The end of a run of the past, which was made after it, is no news.
        if row.finished_at is not None and row.created_at <= row.finished_at:
            finished.add_metric([row.id], row.finished_at)
    yield from (info, started, finished, headline)


def _p99(row: RunRow) -> str:
    """The p99 of a run's load as pages write it, such as `publish p99 4.02 ms`; empty where there is none."""
    figures = stored_figures(row)
    if figures is None or figures.p99_seconds is None:
        return ""
    return f"{figures.latency} p99 {format_latency(figures.p99_seconds)}"


def _lag_bytes(row: RunRow) -> int:
    try:
        size_bytes = (Path(row.directory) / files.EVENTS).stat().st_size
    except OSError:
        return 0
    return max(0, size_bytes - row.events_offset_bytes)


def _schedule_metrics(session: Session) -> Iterator[Metric]:
    schedules = GaugeMetricFamily(f"{_PREFIX}schedules", "Schedules, by whether they may fire.", labels=["enabled"])
    for enabled, count in count_schedules(session).items():
        schedules.add_metric([str(enabled).lower()], count)
    yield schedules
    following = GaugeMetricFamily(
        f"{_PREFIX}schedule_next_timestamp_seconds",
        "When the schedule fires next, in seconds since the epoch; absent when it will not.",
        labels=["schedule"],
    )
    for name, at in next_fire_times(session):
        following.add_metric([name], at)
    yield following
    firings = GaugeMetricFamily(
        f"{_PREFIX}schedule_firings", "Recorded fire times of the present schedules, by outcome.", labels=["outcome"]
    )
    outcomes = count_firings(session)
    for outcome in (QUEUED, MISSED, FAILED):
        firings.add_metric([outcome], outcomes.get(outcome, 0))
    yield firings


def _alert_metrics(services: Services) -> Iterator[Metric]:
    counts, watchdog_at = services.alerts.figures()
    alerts = CounterMetricFamily(f"{_PREFIX}alerts", "Alerts received, by what became of them.", labels=["outcome"])
    for outcome, count in counts.items():
        alerts.add_metric([outcome], count)
    yield alerts
    watchdog = GaugeMetricFamily(
        f"{_PREFIX}watchdog_timestamp_seconds",
        "When the alert that always fires last came, in seconds since the epoch; absent until it does.",
        labels=[],
    )
    if watchdog_at is not None:
        watchdog.add_metric([], watchdog_at)
    yield watchdog
    up = GaugeMetricFamily(f"{_PREFIX}watcher_up", "Whether a watcher of the stack answers.", labels=["watcher"])
    for name, value in sorted(services.watch.up_of_possible().items()):
        up.add_metric([name], float(value))
    yield up
