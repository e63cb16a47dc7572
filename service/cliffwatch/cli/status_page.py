"""`cliffwatch status --watch`: live runs, newest results and next schedules, kept up to date in a terminal."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Problem
from cliffwatch.base.units import format_length, format_share
from cliffwatch.cli.client import ApiClient, path_of
from cliffwatch.cli.live import RunSeen
from cliffwatch.cli.output import ABSENT, show, show_time, visible
from cliffwatch.cli.progress import Picture
from cliffwatch.model.run_state import RunState

#: How often the page is updated on a terminal, and how often it is printed elsewhere.
PERIOD_SECONDS, PLAIN_PERIOD_SECONDS = 2.0, 10.0
LIVE_LIMIT, ENDED_LIMIT, SCHEDULES_LIMIT = 12, 6, 3
_VERDICT_STYLES = {"pass": "green", "degraded": "yellow", "invalid": "magenta", "failed": "red", "stopped": "dim"}
_STATE_STYLES = {RunState.INTERRUPTED.value: "bold red", RunState.QUEUED.value: "dim"}


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run that is not over, and the summary of its newest finding."""

    run: dict[str, Any]
    finding: str = ""


@dataclass(frozen=True, slots=True)
class StatusPage:
    """Content of the page: the service's last answers, and since when it has not answered (monotonic seconds)."""

    url: str
    live: Sequence[LiveRun] = ()
    more: int = 0
    ended: Sequence[dict[str, Any]] = ()
    schedules: Sequence[dict[str, Any]] = ()
    fault: str = ""
    silent_since: float | None = None
    #: State of each live run with the time of its update, so that displayed times advance between two answers.
    pictures: dict[str, Picture] = field(default_factory=dict)


def read_page(api: ApiClient, url: str, clock: Clock) -> StatusPage:
    """Fetch the content of the page from the service. Raises Problem."""
    states = [state.value for state in RunState if state is not RunState.FINISHED]
    runs = [run for state in states for run in api.list_all("/runs", LIVE_LIMIT + 1, state=state)]
    runs.sort(key=lambda run: (run["state"] == RunState.QUEUED, run["created_at"]))
    live, pictures = [], {}
    for listed in runs[:LIVE_LIMIT]:
        run = api.get(path_of("runs", listed["id"]))
        found = api.list_all(path_of("runs", run["id"], "findings"), 1)
        live.append(LiveRun(run, show(found[0]["detail"].get("summary")) if found else ""))
        pictures[run["id"]] = Picture(clock)
        pictures[run["id"]].take(RunSeen(run))
    ended = api.list_all("/runs", ENDED_LIMIT, state=RunState.FINISHED.value)
    firing = [each for each in api.list_all("/schedules") if each.get("enabled") and each.get("next_fire_at")]
    firing.sort(key=lambda schedule: str(schedule["next_fire_at"]))
    return StatusPage(url, live, max(0, len(runs) - LIVE_LIMIT), ended, firing[:SCHEDULES_LIMIT], pictures=pictures)


def rendered(page: StatusPage, clock: Clock) -> RenderableType:
    """Render the page for a terminal of any width."""
    parts: list[RenderableType] = [_heading(page, clock)]
    for each in page.live:
        parts += _live_run(each, page.pictures[each.run["id"]])
    if page.more:
        parts.append(Text(f"and {page.more} more; `cliffwatch run list` shows them", style="dim"))
    if not page.live and page.silent_since is None:
        parts.append(Text("no run goes on; start one with `cliffwatch run start`", style="dim"))
    if page.ended:
        parts += [Rule("newest results", style="dim", align="left"), _ended(page.ended)]
    for schedule in page.schedules:
        words = f"next: {schedule['name']} at {show_time(schedule['next_fire_at'])}"
        parts.append(Text(visible(words), style="dim"))
    return Group(*parts)


def _heading(page: StatusPage, clock: Clock) -> RenderableType:
    if page.silent_since is None:
        return Text.assemble(("the service is ready", "green"), f" at {page.url}")
    seconds = format_length(round(clock.monotonic() - page.silent_since))
    said = f"the service has not answered for {seconds}; runs continue without it: {page.fault}"
    return Text(visible(said), style="bold red")


def _live_run(each: LiveRun, picture: Picture) -> list[RenderableType]:
    run = each.run
    bar = Table.grid(padding=(0, 1), expand=True)
    for ratio in (2, None, 1, None, None):
        bar.add_column(ratio=ratio, no_wrap=True, overflow="ellipsis")
    bar.add_row(
        Text(visible(run["id"]), style="bold"),
        Text(picture.phase, style=_STATE_STYLES.get(run["state"], "cyan")),
        ProgressBar(total=1.0, completed=picture.ratio),
        f"{format_share(round(picture.ratio, 2)):>5}",
        picture.times(),
    )
    lines: list[RenderableType] = [Rule(style="dim"), bar]
    if run["state"] != RunState.QUEUED:
        lines.append(Text(visible(f"  {picture.figures()}"), overflow="ellipsis", no_wrap=True))
    if each.finding:
        lines.append(Text(visible(f"  ▲ {each.finding}"), style="yellow"))
    return lines


def _ended(runs: Sequence[dict[str, Any]]) -> Table:
    table = Table.grid(padding=(0, 2), expand=True)
    for ratio in (None, None, None, 1):
        table.add_column(ratio=ratio, no_wrap=True, overflow="ellipsis")
    for run in runs:
        verdict = show(run.get("verdict"))
        reasons = run.get("reasons") or [ABSENT]
        table.add_row(
            show_time(run.get("finished_at")),
            Text(verdict, style=_VERDICT_STYLES.get(verdict, "")),
            Text(visible(run["id"])),
            Text(visible(str(reasons[0]))),
        )
    return table


class StatusWatch:
    """Poll the service for the page; keep its last answers while it does not answer."""

    def __init__(self, api: ApiClient, url: str, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self.page = StatusPage(url)

    def ask(self) -> None:
        try:
            self.page = read_page(self._api, self.page.url, self._clock)
        except Problem as problem:
            since = self.page.silent_since
            silent_since = self._clock.monotonic() if since is None else since
            self.page = replace(self.page, fault=problem.detail, silent_since=silent_since)

    def render(self) -> RenderableType:
        return rendered(self.page, self._clock)


def watch_status(api: ApiClient, url: str, clock: Clock, console: Console) -> None:
    """Show the page until Ctrl-C: updated in place on a terminal, else printed periodically."""
    watch = StatusWatch(api, url, clock)
    watch.ask()
    if not console.is_terminal or console.is_dumb_terminal:
        while True:
            console.print(watch.render())
            clock.sleep(PLAIN_PERIOD_SECONDS)
            watch.ask()
    with Live(get_renderable=watch.render, console=console, refresh_per_second=4, screen=True):
        while True:
            clock.sleep(PERIOD_SECONDS)
            watch.ask()
