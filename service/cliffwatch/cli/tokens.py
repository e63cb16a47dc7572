"""`cliffwatch token …`: manage API tokens."""

from enum import StrEnum
from typing import Annotated

import typer

from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli import completion
from cliffwatch.cli.client import ApiClient, path_of
from cliffwatch.cli.output import Column, Output, plain, print_json, print_rows, say, show_time
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.cli.tree import CommandTree

app = CommandTree(help="Manage API tokens.")


class ScopeName(StrEnum):
    """Scope of a token, that is, what it allows; each scope includes the ones before it."""

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
    name: Annotated[str, typer.Option("--name", help="Name of its user or its purpose.")],
    scope: Annotated[
        ScopeName,
        typer.Option("--scope", help="read: read only; operate: and start and stop runs; admin: and manage tokens."),
    ] = ScopeName.READ,
    local: Annotated[
        bool,
        typer.Option("--local", help="Create it directly in this machine's database, if the last token was lost."),
    ] = False,
    output: OutputOption = None,
) -> None:
    """Create a token and print it. It cannot be shown again: only its hash is stored."""
    session = session_of(context)
    if local:
        from cliffwatch.cli.serve import make_local_token  # slow to load, and seldom needed

        body = make_local_token(session.keeping_state(), name, scope.value)
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
    """Revoke a token, at once and for good."""
    session = session_of(context)
    with session.client() as api:
        token = _known_id(api, token)
        api.delete(path_of("tokens", token))
    say(f"token {token} is revoked")
    if session.how(output) is Output.JSON:
        print_json({"id": token, "revoked": True})


def _known_id(api: ApiClient, token: str) -> str:
    """Check that an active token has this id. Raises Problem(not_found), which never quotes the text of a token."""
    rows = api.list_all("/tokens")
    row = next((row for row in rows if row["id"] == token), None)
    if row is not None and row["revoked_at"] is None:
        return token
    if row is not None:
        raise Problem(Code.NOT_FOUND, f"the token {token} was revoked at {show_time(row['revoked_at'])}")
    if token.startswith("cw_"):
        detail = "this is the text of a token; give its id, which `cliffwatch token list` shows"
        raise Problem(Code.NOT_FOUND, detail)
    named = [row["id"] for row in rows if row["name"] == token and row["revoked_at"] is None]
    hint = f"; the id of the token with that name is {named[0]}" if len(named) == 1 else ""
    hint = hint or "; `cliffwatch token list` shows the ids"
    raise Problem(Code.NOT_FOUND, f"no token has the id {token!r}{hint}")
