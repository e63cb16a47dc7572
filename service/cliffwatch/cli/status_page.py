"""`cliffwatch status --watch`: live runs, newest results and next schedules, kept up to date in a terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.padding import Padding
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
#: Below this width, what does not fit beside other things is written below them.
NARROW_COLUMNS = 100
LIVE_LIMIT, ENDED_LIMIT, SCHEDULES_LIMIT = 12, 6, 3
_VERDICT_STYLES = {"pass": "green", "degraded": "yellow", "invalid": "magenta", "failed": "red", "stopped": "dim"}
_STATE_STYLES = {RunState.INTERRUPTED.value: "bold red", RunState.QUEUED.value: "dim"}


@dataclass(frozen=True, slots=True)
class StatusPage:
    """Content of the page: the service's last answers, and since when it has not answered (monotonic seconds)."""

    url: str
    live: Sequence[dict[str, Any]] = ()
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
        live.append(run)
        pictures[run["id"]] = Picture(clock)
        pictures[run["id"]].take(RunSeen(run))
    ended = api.list_all("/runs", ENDED_LIMIT, state=RunState.FINISHED.value)
    firing = [each for each in api.list_all("/schedules") if each.get("enabled") and each.get("next_fire_at")]
    firing.sort(key=lambda schedule: str(schedule["next_fire_at"]))
    return StatusPage(url, live, max(0, len(runs) - LIVE_LIMIT), ended, firing[:SCHEDULES_LIMIT], pictures=pictures)


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """The page for a terminal of any width: ids and verdicts are never cut; on a narrow one they have own lines."""

    page: StatusPage
    clock: Clock

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        page, is_narrow = self.page, options.max_width < NARROW_COLUMNS
        yield _heading(page, self.clock)
        for each in page.live:
            yield from _live_run(each, page.pictures[each["id"]], is_narrow)
        if page.more:
            yield Text(f"and {page.more} more; `cliffwatch run list` shows them", style="dim")
        if not page.live and page.silent_since is None:
            yield Text("no run goes on; start one with `cliffwatch run start`", style="dim")
        if page.ended:
            yield Rule("newest results", style="dim", align="left")
            yield from _ended_one_below_the_other(page.ended) if is_narrow else [_ended(page.ended)]
        for schedule in page.schedules:
            words = f"next: {schedule['name']} at {show_time(schedule['next_fire_at'])}"
            yield Text(visible(words), style="dim")


def _heading(page: StatusPage, clock: Clock) -> RenderableType:
    if page.silent_since is None:
        return Text.assemble(("the service is ready", "green"), f" at {page.url}")
    seconds = format_length(round(clock.monotonic() - page.silent_since))
    said = f"the service has not answered for {seconds}; runs continue without it: {page.fault}"
    return Text(visible(said), style="bold red")


def _live_run(run: dict[str, Any], picture: Picture, is_narrow: bool) -> Iterator[RenderableType]:
    name = Text(visible(run["id"]), style="bold")
    phase = Text(picture.phase, style=_STATE_STYLES.get(run["state"], "cyan"))
    progress: list[RenderableType] = [
        ProgressBar(total=1.0, completed=picture.ratio),
        f"{format_share(round(picture.ratio, 2)):>5}",
        picture.times(),
    ]
    yield Rule(style="dim")
    if is_narrow:
        yield Text.assemble(name, "  ", phase)
        yield _row(progress, stretched=0)
    else:
        yield _row([name, phase, *progress], stretched=2)
    if run["state"] != RunState.QUEUED:
        yield Padding(Text(visible(picture.figures())), (0, 0, 0, 2))
    if picture.standing:
        yield Padding(Text(visible(picture.standing)), (0, 0, 0, 2))


def _row(cells: Sequence[RenderableType], stretched: int) -> Table:
    """One line of cells, of which the one at `stretched` takes the space that is left."""
    row = Table.grid(padding=(0, 1), expand=True)
    for index in range(len(cells)):
        row.add_column(ratio=1 if index == stretched else None, no_wrap=True, overflow="ellipsis")
    row.add_row(*cells)
    return row


def _ended_one_below_the_other(runs: Sequence[dict[str, Any]]) -> Iterator[RenderableType]:
    for run in runs:
        verdict = show(run.get("verdict"))
        words = Text(verdict, style=_VERDICT_STYLES.get(verdict, ""))
        yield Text.assemble(words, "  ", visible(run["id"]), "  ", (show_time(run.get("finished_at")), "dim"))
        yield Padding(Text(visible(_reason(run))), (0, 0, 0, 2))


def _reason(run: dict[str, Any]) -> str:
    return str((run.get("reasons") or [ABSENT])[0])


def _ended(runs: Sequence[dict[str, Any]]) -> Table:
    table = Table.grid(padding=(0, 2), expand=True)
    for ratio in (None, None, None, 1):
        table.add_column(ratio=ratio, no_wrap=ratio is None, overflow="fold")
    for run in runs:
        verdict = show(run.get("verdict"))
        table.add_row(
            show_time(run.get("finished_at")),
            Text(verdict, style=_VERDICT_STYLES.get(verdict, "")),
            Text(visible(run["id"])),
            Text(visible(_reason(run))),
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
        return RenderedPage(self.page, self._clock)


def watch_status(api: ApiClient, url: str, clock: Clock, console: Console) -> None:
    """Show the page until Ctrl-C: updated in place on a terminal, else printed periodically."""
    watch = StatusWatch(api, url, clock)
    watch.ask()
    if not console.is_terminal or console.is_dumb_terminal:
        while True:
            console.print(
                Rule(f"{datetime.fromtimestamp(clock.wall(), UTC):%Y-%m-%d %H:%M:%SZ}", style="dim", align="left"),
                watch.render(),
            )
            clock.sleep(PLAIN_PERIOD_SECONDS)
            watch.ask()
    with Live(get_renderable=watch.render, console=console, refresh_per_second=4, screen=True):
        while True:
            clock.sleep(PERIOD_SECONDS)
            watch.ask()
