"""`cliffwatch serve`, `up`, `down`, `status`: the service on this machine."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cliffwatch.app.state_place import note_on_place
from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.client import ApiClient
from cliffwatch.cli.daemon import (
    LOG_FILE,
    Daemon,
    find_daemon,
    forget_daemon,
    log_tail,
    not_ready,
    start_daemon,
    stop_daemon,
)
from cliffwatch.cli.open import login_link
from cliffwatch.cli.output import Output, print_facts, print_json, say, show
from cliffwatch.cli.session import OutputOption, Session, seconds_of, session_of
from cliffwatch.model.run_state import RunState
from cliffwatch.model.settings import Settings

_POLL_SECONDS = 0.1


def serve(
    context: typer.Context,
    listen_host: Annotated[
        str | None, typer.Option("--listen-host", help="Address to listen on; CLIFFWATCH_LISTEN_HOST, else 127.0.0.1.")
    ] = None,
    listen_port: Annotated[
        int | None,
        typer.Option("--listen-port", min=1, max=65535, help="Port; CLIFFWATCH_LISTEN_PORT, else 9899."),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="File for the first token; same as the global flag.")
    ] = None,
) -> None:
    """Run the service in the foreground. The first start creates a token and prints its path once."""
    from cliffwatch.cli.serve import serve_forever  # the service's parts are slow to load, and no client needs them

    session = session_of(context)
    settings = session.keeping_state(listen_host=listen_host, listen_port=listen_port)
    serve_forever(settings, token_file or session.token_path())


def up(
    context: typer.Context,
    timeout: Annotated[str, typer.Option("--timeout", help="How long to wait until it is ready.")] = "60s",
    watchers: Annotated[
        bool | None,
        typer.Option("--watchers/--no-watchers", help="Start the watchers too; default CLIFFWATCH_WATCHERS, else yes."),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Start the service and its watchers in the background, unless they run already, and wait until they are ready."""
    session = session_of(context)
    settings = session.keeping_state(watchers=watchers)
    state_directory = settings.state_directory
    clock = SystemClock()
    patience_seconds = seconds_of("--timeout", timeout)
    daemon = find_daemon(state_directory)
    had_token = session.token_path().exists()
    was_running = daemon is not None
    daemon = daemon or _start(session, state_directory)
    started = clock.monotonic()
    while not _answers(daemon.url):
        waited = clock.monotonic() - started
        if not daemon.process.is_alive():
            forget_daemon(state_directory)
            if not was_running:
                raise Problem(Code.NOT_READY, f"the service ended while it started; {log_tail(state_directory)}")
            # The one that ran was about to end.
            daemon, was_running = _start(session, state_directory), False
        if waited >= patience_seconds:
            raise not_ready(state_directory, waited)
        clock.sleep(_POLL_SECONDS)
    log = state_directory / LOG_FILE
    link = ""
    if sys.stderr.isatty() or not had_token:
        with ApiClient(daemon.url, session.token()) as api:
            link = login_link(api, daemon.url)
    say(
        f"the service is {'already running' if was_running else 'ready'} at {daemon.url}",
        f"  token:        {session.token_path()}",
        f"  log:          {log}",
        *([f"  pages:        {link}"] if link else []),
    )
    if note := note_on_place(state_directory, settings.database_url.startswith("sqlite")):
        say(f"warning: {note}")
    body = {
        "url": daemon.url,
        "pid": daemon.process.pid,
        "state_directory": str(state_directory),
        "token_file": str(session.token_path()),
        "log": str(log),
        "watchers": _start_watchers(settings) if settings.watchers else [],
    }
    if session.how(output) is Output.JSON:
        print_json(body)


def _start(session: Session, state_directory: Path) -> Daemon:
    """Start the service. Raises Problem(not_ready) where its address is taken."""
    if _answers(url := session.local_url()):
        detail = f"a process that `up` did not start answers at {url}; stop it, or set CLIFFWATCH_LISTEN_PORT"
        raise Problem(Code.NOT_READY, detail)
    arguments = ["--state-directory", str(state_directory), "--token-file", str(session.token_path()), "serve"]
    return start_daemon(state_directory, url, arguments)


def down(
    context: typer.Context,
    grace: Annotated[
        str, typer.Option("--grace", help="How long the service may take to finish open requests.")
    ] = "15s",
    output: OutputOption = None,
) -> None:
    """Stop the service and the watchers that `up` started. Runs continue without them."""
    session = session_of(context)
    grace_seconds = seconds_of("--grace", grace)
    settings = session.settings()
    daemon = find_daemon(settings.state_directory)
    live: list[str] = []
    queued = 0
    if daemon is None:
        say("the service is not running")
    else:
        live, queued = _stop_service(session, daemon, settings.state_directory, grace_seconds)
    from cliffwatch.stack.launch import stop_stack

    stopped = stop_stack(settings, SystemClock())
    if stopped:
        say(f"stopped the watchers: {', '.join(stopped)}")
    if session.how(output) is Output.JSON:
        body = {"was_up": daemon is not None, "live_runs": live, "queued_runs": queued, "stopped_watchers": stopped}
        print_json(body)


def _stop_service(
    session: Session, daemon: Daemon, state_directory: Path, grace_seconds: float
) -> tuple[list[str], int]:
    """Stop the service. Returns the ids of runs that continue, and the number of queued runs."""
    live, queued = _live_runs(session, daemon)
    if not stop_daemon(daemon, SystemClock(), grace_seconds):
        say("the service did not stop in time and was killed")
    forget_daemon(state_directory)
    say("the service is stopped")
    if live:
        say(f"these runs continue, and the service takes them over again when it starts: {', '.join(live)}")
    if queued:
        say(f"{queued} queued run{'s' if queued > 1 else ''} will start when the service is up again")
    return live, queued


def status(
    context: typer.Context,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show live runs, newest results and schedules until Ctrl-C.")
    ] = False,
    output: OutputOption = None,
) -> None:
    """Show whether the service is up, and its watchers: exit status 0 when the service is ready, 3 when it is not."""
    session = session_of(context)
    settings = session.settings()
    state_directory = settings.state_directory
    daemon = find_daemon(state_directory) if session.url is None else None
    url = daemon.url if daemon else session.service_url()
    if watch:
        if session.how(output) is Output.JSON:
            raise Problem(Code.BAD_REQUEST, "--watch shows a page for people; leave out --output json, or --watch")
        from rich.console import Console

        from cliffwatch.cli.status_page import watch_status

        with ApiClient(url, session.token()) as client:
            watch_status(client, url, SystemClock(), Console())
    with ApiClient(url, token=None) as api:
        reason = api.why_not_ready()
        ready = reason is None and api.is_ready()
    if ready and daemon is None and session.url is None and session.state_directory is not None:
        reason = _why_not_of(session, url)
        ready = reason is None
    body: dict[str, Any] = {
        "ready": ready,
        "reason": reason,
        "url": url,
        "pid": daemon.process.pid if daemon else None,
        "state_directory": str(state_directory),
    }
    facts = {name.replace("_", " "): show(value) for name, value in body.items()}
    if session.url is None:
        faults = _faults_of_watchers(settings)
        body["watchers"] = [{"name": name, "up": not fault, "reason": fault or None} for name, fault in faults.items()]
        facts["watchers"] = "\n".join(f"{name}: {fault or 'up'}" for name, fault in faults.items()) or "not started"
    print_facts(body, facts, session.how(output))
    if reason is not None:
        raise Problem(Code.NOT_READY, f"the service at {url} is not ready: {reason}")
    if not ready:
        raise Problem(Code.NOT_READY, f"no service is ready at {url}; start it with `cliffwatch up`")


def _why_not_of(session: Session, url: str) -> str | None:
    """Why what answers at a URL is not the service of the session's state directory; None if it is."""
    try:
        with ApiClient(url, session.token()) as api:
            api.list_all("/runs", 1)
    except Problem as problem:
        if problem.code is not Code.UNAUTHENTICATED:
            raise
        return f"what answers there does not know the token in {session.token_path()}: it has another state directory"
    return None


def _faults_of_watchers(settings: Settings) -> dict[str, str]:
    """Why each watcher that `up` started does not answer, by its name; empty where it does."""
    from cliffwatch.base.http_client import http_client
    from cliffwatch.stack.processes import ANSWER_TIMEOUT_SECONDS, fault_of, watchers

    with http_client(ANSWER_TIMEOUT_SECONDS) as client:
        return {name: fault_of(client, watcher) for name, watcher in watchers(settings).items()}


def _start_watchers(settings: Settings) -> list[dict[str, Any]]:
    """Start the watchers. Print the address of each, or why it is unavailable, and return a JSON object for each."""
    from cliffwatch.stack.channels import usable_channels
    from cliffwatch.stack.launch import start_stack
    from cliffwatch.stack.processes import State

    for fault in usable_channels(settings)[1]:
        say(f"warning: {fault}")
    outcomes = start_stack(settings, SystemClock())
    for outcome in outcomes:
        component = outcome.component
        more = f"; {outcome.log} says more" if outcome.log else ""
        if outcome.state is State.WITHOUT:
            say(f"  {component.name} is unavailable ({component.impact}): {outcome.reason}{more}")
        elif outcome.state is State.SLOW:
            say(f"  {component.name} was started and does not answer yet: {outcome.reason}{more}")
        else:
            already = " (already running)" if outcome.state is State.RUNNING else ""
            say(f"  {component.name + ':':<18}http://{component.address(settings)}{already}")
    return [
        {
            "name": outcome.component.name,
            "state": outcome.state.value,
            "url": None if outcome.state is State.WITHOUT else f"http://{outcome.component.address(settings)}",
            "reason": outcome.reason or None,
        }
        for outcome in outcomes
    ]


def _answers(url: str) -> bool:
    with ApiClient(url, token=None) as api:
        return api.is_ready()


def _live_runs(session: Session, daemon: Daemon) -> tuple[list[str], int]:
    """Ids of started, unfinished runs, and the number of queued runs; none if the service does not report them."""
    try:
        with ApiClient(daemon.url, session.token()) as api:
            begun = [state for state in RunState if state not in (RunState.FINISHED, RunState.QUEUED)]
            live = [run["id"] for state in begun for run in api.list_all("/runs", state=state.value)]
            return live, len(api.list_all("/runs", state=RunState.QUEUED.value))
    except Problem:
        return [], 0
