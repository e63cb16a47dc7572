"""The application: its routes, and the tasks that start before the first request and stop after the last."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from fastapi import FastAPI
from fastapi.routing import APIRoute

from cliffwatch.api import (
    alerts,
    discovery,
    drives,
    health,
    journals,
    live,
    metrics,
    reports,
    runs,
    schedules,
    tokens,
    workloads,
)
from cliffwatch.app import launcher
from cliffwatch.app.admission import RunTurns
from cliffwatch.app.alerts import AlertIntake
from cliffwatch.app.drives import examined_drives
from cliffwatch.app.indexer import Indexer
from cliffwatch.app.library import RunLibrary
from cliffwatch.app.login_links import LoginLinks
from cliffwatch.app.reports import ReportService
from cliffwatch.app.retention import Retention
from cliffwatch.app.runs import RunService
from cliffwatch.app.scheduler import Scheduler
from cliffwatch.app.scheduler_lock import SchedulerLock
from cliffwatch.app.schedules import ScheduleService
from cliffwatch.app.state_place import note_on_place
from cliffwatch.app.tokens import TokenService
from cliffwatch.app.workloads import WorkloadService
from cliffwatch.base.clock import Clock, SystemClock
from cliffwatch.base.errors import Code
from cliffwatch.base.logs import LogRotator, logs_below
from cliffwatch.base.questions import Questions, SharedAnswer
from cliffwatch.base.version import VERSION
from cliffwatch.http import problems
from cliffwatch.http.context import API_PREFIX, Services
from cliffwatch.http.figures import BodyLimit, HttpFigures, Measured
from cliffwatch.http.stream_places import StreamPlaces
from cliffwatch.labs.aging import routes as aging
from cliffwatch.labs.bundle import routes as bundles
from cliffwatch.labs.bundle.imports import ImportService
from cliffwatch.model.request import RunRequest
from cliffwatch.model.settings import Settings
from cliffwatch.model.workload import BUILT_IN_WORKLOADS
from cliffwatch.report.limits.now import WatchedLimits
from cliffwatch.stack.watch import Watch
from cliffwatch.store.database import Database, open_database, upgrade
from cliffwatch.store.monitor import DatabaseMonitor
from cliffwatch.store.queries import unfinished_runs
from cliffwatch.telemetry.drive_health import DriveSource
from cliffwatch.web import (
    alert_list,
    api_page,
    library_pages,
    login,
    notification_pages,
    run_now,
    run_pages,
    static_files,
    token_pages,
    workload_pages,
)
from cliffwatch.web import drives as drives_page
from cliffwatch.web import schedules as schedules_page
from cliffwatch.web import start as start_page
from cliffwatch.web.firing import FollowedAlerts
from cliffwatch.web.page import show_problem

_LOG = logging.getLogger(__name__)
_PROTECTED = (
    Code.UNAUTHENTICATED,
    Code.FORBIDDEN,
    Code.BAD_REQUEST,
    Code.INTERNAL,
    Code.JOURNAL_UNWRITABLE,
    Code.NOT_READY,
    Code.DATABASE_UNAVAILABLE,
)
_PAGES = (
    run_pages,
    library_pages,
    run_now,
    start_page,
    login,
    drives_page,
    schedules_page,
    workload_pages,
    notification_pages,
    token_pages,
    alert_list,
    api_page,
    static_files,
)
#: Modules with routes of the API, in the order in which routes are tried and documented.
_API = (runs, bundles, live, journals, reports, workloads, schedules, drives, tokens, alerts, discovery, aging)
_OPEN = (Code.INTERNAL, Code.NOT_READY)


class Background(Protocol):
    """Background task of the service, such as the reconciler."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def busy_seconds(self) -> float: ...


BackgroundFactory = Callable[[Database, Clock], Background]


def create_app(
    settings: Settings,
    clock: Clock | None = None,
    *,
    reconciler: BackgroundFactory | None = None,
    request_stop: Callable[[Path, bool], None] = launcher.request_stop,
) -> FastAPI:
    """Create the service's application. `reconciler` and `request_stop` control workers; tests replace them."""
    app = FastAPI(
        title="Cliffwatch",
        version=VERSION,
        description="Soak tests that say, while they run, when, where and why latency fell off a cliff.",
        lifespan=_lifespan_of(settings, clock or SystemClock(), reconciler or _reconciler, request_stop),
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.http = HttpFigures()
    app.state.watched_limits = WatchedLimits()
    app.state.followed_alerts = FollowedAlerts()
    problems.install(app, API_PREFIX, show_problem, _routes())
    for module in _API:
        app.include_router(module.router, responses=problems.responses(*_PROTECTED))
    for module in (health, metrics):
        app.include_router(module.router, responses=problems.responses(*_OPEN))
    for module in _PAGES:
        app.include_router(module.router)
    problems.declare(app, API_PREFIX, lambda path: _PROTECTED if path.startswith(f"{API_PREFIX}/") else _OPEN)
    app.state.http.know(_templates())
    app.add_middleware(BodyLimit, streamed={bundles.IMPORT_PATH})
    app.add_middleware(Measured, figures=app.state.http)
    return app


def _lifespan_of(
    settings: Settings, clock: Clock, reconciler_of: BackgroundFactory, request_stop: Callable[[Path, bool], None]
) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if note := note_on_place(settings.state_directory, settings.database_url.startswith("sqlite")):
            _LOG.warning("%s", note)
        upgrade(settings.database_url)
        with ExitStack() as held:
            database = open_database(settings.database_url)
            held.callback(database.close)
            database_monitor = DatabaseMonitor(database)
            database_monitor.start()
            held.callback(database_monitor.stop)
            questions = Questions(clock)
            turns = RunTurns()
            service = RunService(settings, database, clock, request_stop, questions, turns)
            scheduler = _scheduler(settings, database, clock, service)
            # Started before all that follows: its lock ensures that no other service works on the same state.
            scheduler.start()
            held.callback(scheduler.stop)
            service.sweep()
            imports = ImportService(settings.runs_directory, database, clock, turns)
            imports.sweep()
            workloads = WorkloadService(database, clock)
            workloads.add_built_in(BUILT_IN_WORKLOADS)
            indexer = Indexer(database, settings.runs_directory, turns, clock)
            indexer.start()
            held.callback(indexer.stop)
            library = RunLibrary(settings, database, clock, turns)
            library.start()
            retention = Retention(settings, database, clock, library)
            retention.start()
            held.callback(retention.stop)
            reconciler = reconciler_of(database, clock)
            reconciler.start()
            held.callback(reconciler.stop)
            intake = AlertIntake(database, clock)
            watch = Watch(settings, database, clock, lambda: intake.figures()[1])
            watch.start()
            held.callback(watch.stop)
            logs = LogRotator(lambda: [*logs_below(settings.state_directory), *_workers_logs(database)])
            logs.start()
            held.callback(logs.stop)
            app.state.imports = imports
            app.state.services = Services(
                settings=settings,
                clock=clock,
                database=database,
                runs=service,
                library=library,
                retention=retention,
                reports=ReportService(settings.state_directory / "cache", database, clock),
                workloads=workloads,
                tokens=TokenService(database, clock),
                login_links=LoginLinks(clock),
                scheduler=scheduler,
                schedules=ScheduleService(database, clock, service, scheduler),
                http=app.state.http,
                alerts=intake,
                watch=watch,
                database_monitor=database_monitor,
                drives=SharedAnswer(lambda: examined_drives(DriveSource.of(settings), clock.wall(), questions)),
                reconciling_seconds=reconciler.busy_seconds,
                streams=StreamPlaces(),
            )
            try:
                yield
            finally:
                app.state.services = None
                app.state.imports = None

    return lifespan


def _workers_logs(database: Database) -> list[Path]:
    with database.snapshot() as session:
        return [launcher.log_of(Path(row.directory)) for row in unfinished_runs(session)]


def _scheduler(settings: Settings, database: Database, clock: Clock, service: RunService) -> Scheduler:
    def submit(request: RunRequest, created_by: str, schedule_id: str, confirmed_blocks: str | None) -> str:
        return service.submit(request, created_by, schedule_id=schedule_id, confirmed_blocks=confirmed_blocks)[0]

    lock = SchedulerLock(settings.state_directory / "scheduler.lock", database.engine, clock)
    return Scheduler(database, clock, lock, settings.misfire_grace, submit)


def _reconciler(database: Database, clock: Clock) -> Background:
    from cliffwatch.app.reconciler import Reconciler

    return Reconciler(database, clock)


def _templates() -> list[tuple[str, str]]:
    """(method, path template) of every route, including those of pages."""
    # Not from the OpenAPI document, which takes as long to make as the rest of the application.
    return [(method, route.path) for route in _routes() for method in route.methods or ()]


def _routes() -> list[APIRoute]:
    routes = [route for module in (*_API, health, metrics, *_PAGES) for route in module.router.routes]
    return [route for route in routes if isinstance(route, APIRoute)]
