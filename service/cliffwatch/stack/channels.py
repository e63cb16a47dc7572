"""Channels: where people are notified, of what, and the file that holds each one's secret.

They stand in `notifications.json` of the state directory, without their secrets. What Alertmanager reads is made from
them (`receivers`) whenever the stack is started or a channel changes.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from cliffwatch.base.durable import write_json_durably
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.model.settings import Settings

FILE = "notifications.json"
#: Longer than any address or key.
_SECRET_CHARACTERS = 4096


class ChannelKind(StrEnum):
    """What carries a notification."""

    SLACK = "slack"
    EMAIL = "email"
    WEBHOOK = "webhook"
    PAGERDUTY = "pagerduty"


class Occasion(StrEnum):
    """What a channel is notified of; docs/notifications.md says which alerts each is."""

    CLIFF = "cliff"
    DEGRADATION = "degradation"
    TROUBLE = "trouble"
    FINISHED = "finished"
    INVALID = "invalid"


class Channel(BaseModel):
    """A channel by its name; `url_file` is absolute and holds what `secret_of` reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    kind: ChannelKind
    url_file: Path
    occasions: tuple[Occasion, ...]


class _Channels(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    channels: tuple[Channel, ...] = ()


def read_channels(settings: Settings) -> tuple[Channel, ...]:
    """The channels of a state directory. Raises Problem for a file that cannot be read."""
    path = settings.state_directory / FILE
    try:
        return _Channels.model_validate_json(path.read_bytes()).channels
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise Problem(Code.BAD_REQUEST, f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise Problem(Code.BAD_REQUEST, f"{path} is damaged; correct or remove it", faults_of(error)) from error


def write_channels(settings: Settings, channels: Sequence[Channel]) -> None:
    """Replace the channels of a state directory, durably. Raises OSError."""
    document = _Channels(channels=tuple(channels)).model_dump(mode="json")
    settings.state_directory.mkdir(parents=True, exist_ok=True)
    write_json_durably(settings.state_directory / FILE, document)


def secret_of(channel: Channel) -> str:
    """Address or key in a channel's file. Raises Problem(bad_request) that names the file and what belongs there."""
    path = channel.url_file
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_SECRET_CHARACTERS).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Problem(Code.BAD_REQUEST, f"--url-file: {path} cannot be read: {reason}") from error
    if (fault := _fault_in(channel.kind, text)) is not None:
        raise Problem(Code.BAD_REQUEST, f"--url-file: {path} {fault}")
    return text


def with_secrets(channels: Iterable[Channel]) -> tuple[dict[Channel, str], list[str]]:
    """Channels by their secrets, and why others have none: one that cannot be read keeps no other from its notices."""
    found: dict[Channel, str] = {}
    faults = []
    for channel in channels:
        try:
            found[channel] = secret_of(channel)
        except Problem as problem:
            faults.append(f"nothing is sent to {channel.name}: {problem.detail}")
    return found, faults


def _fault_in(kind: ChannelKind, text: str) -> str | None:
    """What is wrong with the content of a channel's file, without quoting it."""
    if not text.isascii() or not text.isprintable() or " " in text:
        return "has to hold one word in ASCII"
    if kind is ChannelKind.PAGERDUTY:
        return None if text.isalnum() else "has to hold an integration key, which is letters and digits"
    try:
        url = urlsplit(text)
        host, _ = url.hostname, url.port
    except ValueError:
        return "does not hold a URL"
    if kind is not ChannelKind.EMAIL:
        return None if url.scheme in ("http", "https") and host else "has to hold a URL that begins with https://"
    query = parse_qs(url.query)
    is_whole = url.scheme in ("smtp", "smtps") and host and query.get("from") and query.get("to")
    return None if is_whole else "has to hold smtp://USER:PASSWORD@HOST:PORT/?from=ADDRESS&to=ADDRESS (or smtps://)"


def mail_of(url: str) -> dict[str, object]:
    """Fields of Alertmanager's `email_configs` from a URL that `secret_of` took.

    `smtp` asks the server for TLS, unless it is this machine; `smtps` begins with it.
    """
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    is_implicit = parts.scheme == "smtps"
    host = parts.hostname or ""
    mail: dict[str, object] = {
        "to": ", ".join(query["to"]),
        "from": query["from"][0],
        "smarthost": f"{f'[{host}]' if ':' in host else host}:{parts.port or (465 if is_implicit else 587)}",
        "require_tls": not is_implicit and host not in ("localhost", "127.0.0.1", "::1"),
    }
    if parts.username is not None:
        mail["auth_username"] = unquote(parts.username)
        mail["auth_password"] = unquote(parts.password or "")
    return mail
