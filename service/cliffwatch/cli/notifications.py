"""`cliffwatch notify …`: notify people of cliffs and of runs that ended, through this machine's Alertmanager."""

from pathlib import Path
from typing import Annotated

import typer

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.output import Column, Output, plain, print_json, print_rows, say
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.cli.tree import CommandTree
from cliffwatch.model.settings import Settings
from cliffwatch.stack.channels import (
    Channel,
    ChannelKind,
    Occasion,
    changing_channels,
    read_channels,
    secret_of,
    write_channels,
)

app = CommandTree(help="Notify people of cliffs and of runs that ended: Slack, e-mail, PagerDuty, or any web server.")

_DEFAULT = ",".join((Occasion.CLIFF, Occasion.FINISHED, Occasion.INVALID))
_COLUMNS = (
    Column("CHANNEL", plain("name")),
    Column("KIND", plain("kind")),
    Column("ON", lambda channel: ",".join(channel["occasions"])),
    Column("FILE", plain("url_file")),
)
ChannelArgument = Annotated[
    str, typer.Argument(metavar="CHANNEL", help="A channel's name; `cliffwatch notify list` shows them.")
]


@app.command("add")
def add(
    context: typer.Context,
    kind: Annotated[ChannelKind, typer.Argument(metavar="slack|email|webhook|pagerduty", help="What carries it.")],
    url_file: Annotated[
        Path,
        typer.Option(
            "--url-file",
            metavar="FILE",
            help="File with the address, which is a secret: of Slack's or another webhook, smtp://USER:PASSWORD@HOST/"
            "?from=ADDRESS&to=ADDRESS, or PagerDuty's integration key.",
        ),
    ],
    on: Annotated[str, typer.Option("--on", help=f"What to notify of: {', '.join(Occasion)}.")] = _DEFAULT,
    name: Annotated[str | None, typer.Option("--name", help="Name of the channel; default: its kind.")] = None,
    output: OutputOption = None,
) -> None:
    """Add a channel, or change the one with that name. `notify test` tries it."""
    from cliffwatch.stack.earlier_ends import silence_earlier_ends

    session = session_of(context)
    settings = session.keeping_state()
    channel = _channel(name or kind.value, kind, url_file, on)
    secret_of(channel)
    with changing_channels(settings):
        others = [each for each in read_channels(settings) if each.name != channel.name]
        silence_earlier_ends(settings, SystemClock())
        sends = _keep(settings, [*others, channel])
    say(f"{channel.name} is notified of {', '.join(channel.occasions)}; try it: cliffwatch notify test {channel.name}")
    if not sends:
        how = (
            "`cliffwatch up` starts it"
            if settings.watchers
            else "CLIFFWATCH_WATCHERS=true and `cliffwatch up` start it"
        )
        say(f"  Alertmanager does not answer here; {how}, and then it sends")
    if session.how(output) is Output.JSON:
        print_json(channel.model_dump(mode="json"))


@app.command("list")
def list_channels(context: typer.Context, output: OutputOption = None) -> None:
    """List channels, without their secrets."""
    from cliffwatch.stack.channels import with_secrets

    session = session_of(context)
    channels = read_channels(session.settings())
    _, faults = with_secrets(channels)
    say(*(f"warning: {fault}" for fault in faults))
    rows = [channel.model_dump(mode="json") for channel in channels]
    print_rows(rows, _COLUMNS, session.how(output), "no channels; add one with `cliffwatch notify add`")


@app.command("test")
def send_test(context: typer.Context, channel: ChannelArgument, output: OutputOption = None) -> None:
    """Send a notification to a channel, and wait until it was delivered."""
    from cliffwatch.stack.trial import send_trial

    session = session_of(context)
    settings = session.settings()
    found = _known(settings, channel)
    secret_of(found)
    send_trial(settings, found, SystemClock())
    say(f"{found.name} took a notification; look for it there")
    if session.how(output) is Output.JSON:
        print_json({"name": found.name, "delivered": True})


@app.command("remove")
def remove(context: typer.Context, channel: ChannelArgument, output: OutputOption = None) -> None:
    """Remove a channel. The file with its address stays."""
    session = session_of(context)
    settings = session.keeping_state()
    with changing_channels(settings):
        found = _known(settings, channel)
        _keep(settings, [each for each in read_channels(settings) if each.name != found.name])
    say(f"{found.name} is notified of nothing any more")
    if session.how(output) is Output.JSON:
        print_json({"name": found.name, "removed": True})


def _channel(name: str, kind: ChannelKind, url_file: Path, on: str) -> Channel:
    """Channel from the flags of `add`. Raises Problem(bad_request) that names the flag."""
    occasions = []
    for word in filter(None, (word.strip() for word in on.split(","))):
        if word not in list(Occasion):
            raise Problem(Code.BAD_REQUEST, f"--on: {word!r} is none of {', '.join(Occasion)}")
        occasions.append(Occasion(word))
    if not occasions:
        raise Problem(Code.BAD_REQUEST, f"--on: say of what, such as {_DEFAULT}")
    try:
        return Channel(
            name=name, kind=kind, url_file=url_file.expanduser().absolute(), occasions=tuple(dict.fromkeys(occasions))
        )
    except ValueError as error:
        detail = f"--name: {name!r} is not a name; a name has small letters, digits and -, 40 at most"
        raise Problem(Code.BAD_REQUEST, detail) from error


def _known(settings: Settings, name: str) -> Channel:
    channels = read_channels(settings)
    found = next((channel for channel in channels if channel.name == name), None)
    if found is None:
        names = ", ".join(channel.name for channel in channels) or "none; `cliffwatch notify add` adds one"
        raise Problem(Code.NOT_FOUND, f"no channel has the name {name!r}; there are: {names}")
    return found


def _keep(settings: Settings, channels: list[Channel]) -> bool:
    """Save the channels, and reload Alertmanager if it was ever started here. Returns whether Alertmanager answers."""
    from cliffwatch.stack.channels import with_secrets
    from cliffwatch.stack.components import ALERTMANAGER
    from cliffwatch.stack.launch import configure_alertmanager, reload_alertmanager

    write_channels(settings, channels)
    found, faults = with_secrets(channels)
    say(*(f"warning: {fault}" for fault in faults))
    if not ALERTMANAGER.directory(settings).exists():
        return False
    configure_alertmanager(settings, found)
    return reload_alertmanager(settings)
