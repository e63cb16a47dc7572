"""Session of one command: which service, which token, which output format."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.privacy import keep_private
from cliffwatch.cli.output import Output

if TYPE_CHECKING:
    from cliffwatch.cli.client import ApiClient
    from cliffwatch.model.settings import Settings

TOKEN_VARIABLE = "CLIFFWATCH_TOKEN"
TOKEN_FILE = "token"
#: Exit status after Ctrl-C.
EXIT_INTERRUPTED = 130
#: Maximum that is read of a token file: many times the length of a token.
_TOKEN_FILE_CHARACTERS = 4096

#: `--output` after the command, which overrides the global `--output`.
OutputOption = Annotated[Output | None, typer.Option("--output", help="Output format: table or JSON.")]


@dataclass(frozen=True, slots=True)
class Session:
    """The global flags. None stands for a flag that was not given."""

    url: str | None
    token_file: Path | None
    state_directory: Path | None
    output: Output | None

    def settings(self, **given: object) -> "Settings":
        """Settings of this machine's service: the environment's, overridden by `given`. Raises Problem(bad_request)."""
        from cliffwatch.model.settings import read_settings

        given["state_directory"] = self.state_directory
        return read_settings(**{name: value for name, value in given.items() if value is not None})

    def keeping_state(self, **given: object) -> "Settings":
        """Settings for a command that writes state files itself; sets the umask, so that the files are private."""
        keep_private()
        return self.settings(**given)

    def local_url(self) -> str:
        """URL at which the service of this machine listens."""
        settings = self.settings()
        return f"http://{settings.listen_host}:{settings.listen_port}"

    def service_url(self) -> str:
        """URL of the service: --url, else this machine's. Raises Problem(bad_request) if not http:// or https://."""
        if self.url and not self.url.startswith(("http://", "https://")):
            scheme, found, rest = self.url.partition("://")
            wrong = f"the scheme {scheme!r}, which is not one of http, https" if found else "no scheme"
            raise Problem(Code.BAD_REQUEST, f"--url: {self.url!r} has {wrong}; write http://{rest or self.url}")
        return self.url or self.local_url()

    def token_path(self) -> Path:
        return self.token_file or self.settings().state_directory / TOKEN_FILE

    def token(self) -> str:
        """Bearer token from CLIFFWATCH_TOKEN, else from the token file. Raises Problem when there is neither."""
        given = os.environ.get(TOKEN_VARIABLE)
        if given:
            return _checked(given, TOKEN_VARIABLE)
        path = self.token_path()
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                token = file.read(_TOKEN_FILE_CHARACTERS).strip()
        except OSError as error:
            remedy = (
                f"correct --token-file, or set {TOKEN_VARIABLE}"
                if self.token_file
                else "`cliffwatch up` makes it. Where the service keeps its state elsewhere, name the place with "
                f"--state-directory, or the token with --token-file or {TOKEN_VARIABLE}"
            )
            detail = f"no token: {path} cannot be read ({error.strerror}); {remedy}"
            raise Problem(Code.UNAUTHENTICATED, detail) from error
        if not token:
            raise Problem(Code.UNAUTHENTICATED, f"no token: {path} is empty; make one with `cliffwatch token create`")
        return _checked(token, str(path))

    def client(self) -> "ApiClient":
        from cliffwatch.cli.client import ApiClient

        return ApiClient(self.service_url(), self.token())

    def how(self, output: Output | None) -> Output:
        """Output format: --output after the command, else before it, else a table."""
        return output or self.output or Output.TABLE


def _checked(text: str, where: str) -> str:
    """The token, stripped, if it can be sent in a header. Raises Problem if it cannot be a token."""
    token = text.strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise Problem(Code.UNAUTHENTICATED, f"{where} does not hold a token; a token is one word that begins with cw_")
    return token


def seconds_of(flag: str, text: str) -> float:
    """Seconds of the duration given to a flag. Raises Problem that names the flag."""
    from cliffwatch.base.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise Problem(Code.BAD_REQUEST, f"{flag}: {error}") from error


def session_of(context: typer.Context) -> Session:
    session = context.obj
    assert isinstance(session, Session), "the root command makes the session"
    return session
