"""`cliffwatch token …`: who may do what over the API."""

from enum import StrEnum
from typing import Annotated

import typer

from cliffwatch.cli import completion
from cliffwatch.cli.client import path_of
from cliffwatch.cli.output import Column, Output, plain, print_json, print_rows, say, show_time
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.cli.tree import CommandTree

app = CommandTree(help="Who may do what over the API.")


class ScopeName(StrEnum):
    """What a token allows; each includes the ones before it."""

    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"


_COLUMNS = (
    Column("TOKEN", plain("id")),
    Column("NAME", plain("name")),
    Column("SCOPE", plain("scope")),
    Column("CREATED", lambda token: show_time(token.get("created_at"))),
    Column("REVOKED", lambda token: show_time(token.get("revoked_at"))),
)


@app.command("create")
def create(
    context: typer.Context,
    name: Annotated[str, typer.Option("--name", help="Whose it is, or what for.")],
    scope: Annotated[
        ScopeName, typer.Option("--scope", help="read: look; operate: start and stop runs too; admin: tokens too.")
    ] = ScopeName.READ,
    local: Annotated[
        bool,
        typer.Option("--local", help="Make it in this machine's database, for when the last token was lost."),
    ] = False,
    output: OutputOption = None,
) -> None:
    """Make a token and print it. It cannot be shown again: only its hash is kept."""
    session = session_of(context)
    if local:
        from cliffwatch.cli.serve import make_local_token  # slow to load, and seldom needed

        body = make_local_token(session.settings(), name, scope.value)
    else:
        with session.client() as api:
            body = api.post("/tokens", {"name": name, "scope": scope.value})
    if session.how(output) is Output.JSON:
        print_json(body)
        return
    say(f"token {body['id']} of scope {body['scope']}; keep it, it cannot be shown again:")
    print(body["token"])


@app.command("list")
def list_tokens(context: typer.Context, output: OutputOption = None) -> None:
    """List tokens, without their secrets."""
    session = session_of(context)
    with session.client() as api:
        rows = api.list_all("/tokens")
    print_rows(rows, _COLUMNS, session.how(output), "no tokens")


@app.command("revoke")
def revoke(
    context: typer.Context,
    token: Annotated[
        str,
        typer.Argument(
            metavar="TOKEN", help="The token's id, from `cliffwatch token list`.", autocompletion=completion.tokens
        ),
    ],
    output: OutputOption = None,
) -> None:
    """Make a token invalid at once and for good."""
    session = session_of(context)
    with session.client() as api:
        api.delete(path_of("tokens", token))
    say(f"token {token} is revoked")
    if session.how(output) is Output.JSON:
        print_json({"id": token, "revoked": True})
