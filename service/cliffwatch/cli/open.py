"""`cliffwatch open`: the pages in a browser, logged in."""

import os
import sys
import webbrowser
from typing import Annotated

import typer

from cliffwatch.cli import completion
from cliffwatch.cli.client import ApiClient, path_of
from cliffwatch.cli.output import Output, print_json, put
from cliffwatch.cli.run_id import known_run
from cliffwatch.cli.session import OutputOption, session_of

#: Environment variables of a graphical session.
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")


def open_(
    context: typer.Context,
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN", help="The run whose page to open; without it, the list.", autocompletion=completion.runs
        ),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Open the pages in a browser, logged in, and print the link: it works once, within ten minutes.

    Without a graphical session, as over SSH, the link is only printed.
    """
    session = session_of(context)
    with session.client() as api:
        path = "/runs" if run is None else path_of("runs", known_run(api, run))
        link = login_link(api, session.service_url(), path)
    if session.how(output) is Output.JSON:
        print_json({"url": link})
    else:
        put(link)
    # A browser for the terminal would hide what was printed.
    if sys.platform == "darwin" or any(os.environ.get(name) for name in _SCREENS):
        webbrowser.open(link)


def login_link(api: ApiClient, url: str, path: str = "/runs") -> str:
    """New link that opens the page at `path` of the service at `url`, logged in with the client's token."""
    return f"{url.rstrip('/')}{api.post('/login-links', {'next': path})['path']}"
