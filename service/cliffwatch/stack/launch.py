"""Start and stop all watchers: tokens and configuration files first, then the processes in order of dependency."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import httpx
from sqlalchemy import select

from cliffwatch.base.clock import Clock
from cliffwatch.base.durable import write_durably
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.http_client import http_client
from cliffwatch.base.resources import ALERTS_DIRECTORY
from cliffwatch.model.scope import Scope
from cliffwatch.model.settings import Settings
from cliffwatch.stack import processes
from cliffwatch.stack.channels import Channel, usable_channels
from cliffwatch.stack.components import ALERTMANAGER, COMPONENTS, EXPORTERS, PROMETHEUS, Component, stack_directory
from cliffwatch.stack.configuration import (
    WEBHOOK_PATH,
    alertmanager_configuration,
    prometheus_configuration,
)
from cliffwatch.store.database import Database, open_database
from cliffwatch.store.models import TokenRow
from cliffwatch.store.tokens import create_token, find_token

#: Scrape interval of the service and the watchers, since short runs are judged by rates over a few seconds. Workers of
#: runs are scraped as often as their windows need.
SCRAPE_INTERVAL_SECONDS = 5.0
TOKEN_FILE = "token"
#: Scope of each watcher's API token.
SCOPES = {PROMETHEUS: Scope.READ, ALERTMANAGER: Scope.OPERATE}


def start_stack(
    settings: Settings, clock: Clock, *, alerts_directory: Path = ALERTS_DIRECTORY
) -> list[processes.Outcome]:
    """Start the watchers that do not run yet; returns the outcome of each, also of those that could not be started.

    Call this when the service is up: the watchers' tokens are made in its database.
    """
    with processes.alone(settings):
        make_tokens(settings, clock)
        if configure_alertmanager(settings, usable_channels(settings)[0]):
            processes.reload(settings, ALERTMANAGER)
        others = [component for component in COMPONENTS if component is not PROMETHEUS]
        outcomes = processes.start(settings, others, clock)
        there = {outcome.component for outcome in outcomes if outcome.state is not processes.State.WITHOUT}
        configuration = prometheus_configuration(
            service_address=_service_address(settings),
            prometheus_address=PROMETHEUS.address(settings),
            token_file=token_path(settings, PROMETHEUS),
            alertmanager_address=ALERTMANAGER.address(settings) if ALERTMANAGER in there else None,
            exporters={job: exporter.address(settings) for job, exporter in EXPORTERS.items() if exporter in there},
            scrape_interval_seconds=SCRAPE_INTERVAL_SECONDS,
            alerts_directory=alerts_directory,
            major_version=_major_version(PROMETHEUS, settings),
        )
        if _configure(settings, PROMETHEUS, configuration):
            processes.reload(settings, PROMETHEUS)
        return [*outcomes, *processes.start(settings, [PROMETHEUS], clock)]


def configure_alertmanager(settings: Settings, channels: Mapping[Channel, str]) -> bool:
    """Write Alertmanager's configuration with channels (channel → secret); returns whether it changed."""
    configuration = alertmanager_configuration(
        f"http://{_service_address(settings)}{WEBHOOK_PATH}",
        token_path(settings, ALERTMANAGER),
        channels=channels,
        public_url=settings.public_url,
    )
    return _configure(settings, ALERTMANAGER, configuration)


def reload_alertmanager(settings: Settings) -> bool:
    """Make Alertmanager reload its configuration, also one in another container; returns whether it answers.

    It has reloaded when this returns, unlike after a signal: a reload during a delivery sends the notification again.

    Raises Problem(not_ready) where it refuses the configuration.
    """
    try:
        url = f"http://{ALERTMANAGER.address(settings)}/-/reload"
        with http_client(processes.ANSWER_TIMEOUT_SECONDS) as client:
            response = client.post(url)
    except httpx.HTTPError:
        return False
    if not response.is_success:
        said = f"Alertmanager refuses its configuration and keeps the one before: {response.text.strip()}"
        raise Problem(Code.NOT_READY, said)
    return True


def stop_stack(settings: Settings, clock: Clock) -> list[str]:
    """Stop the watchers that run; returns their names."""
    if not stack_directory(settings).exists():
        return []
    with processes.alone(settings):
        return processes.stop(settings, clock)


def _major_version(component: Component, settings: Settings) -> int:
    """Major version of the watcher's installed program; 2 where it prints none, or is not installed."""
    program = component.program(settings)
    if program is None:
        return 2
    said = subprocess.run(
        [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
    # `prometheus, version 2.42.0+ds (branch: …)`; the first versions wrote it to standard error.
    found = re.search(r"version (\d+)\.", said.stdout + said.stderr)
    return 2 if found is None else int(found[1])


def token_path(settings: Settings, component: Component) -> Path:
    return component.directory(settings) / TOKEN_FILE


def make_tokens(settings: Settings, clock: Clock) -> None:
    """Ensure that each watcher has a valid token; a watcher that gets a new one has its earlier tokens revoked."""
    database = open_database(settings.database_url)
    try:
        for component, scope in SCOPES.items():
            _make_token(database, token_path(settings, component), component.name, scope, clock.wall())
    finally:
        database.close()


def _make_token(database: Database, path: Path, name: str, scope: Scope, now: float) -> None:
    with database.session() as session:
        text = path.read_text(encoding="utf-8").strip() if path.exists() else ""
        known = find_token(session, text) if text else None
        if known is not None and known.scope == scope.label:
            return
        held = f"{name} of this machine"
        for row in session.scalars(select(TokenRow).where(TokenRow.name == held, TokenRow.revoked_at.is_(None))):
            row.revoked_at = now
        text = create_token(session, held, scope, now)[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, text + "\n")


def _configure(settings: Settings, component: Component, content: str) -> bool:
    """Write a watcher's configuration; returns whether it changed."""
    path = component.directory(settings) / f"{component.name}.yaml"
    if path.exists() and path.read_text(encoding="utf-8") == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(path, content)
    return True


def _service_address(settings: Settings) -> str:
    return f"{settings.listen_host}:{settings.listen_port}"
