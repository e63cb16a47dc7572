"""Notification channels: for each its kind, the occasions for notifications, and the file that holds its secret.

They are stored in `notifications.json` of the state directory, without their secrets. Alertmanager's configuration is
made from them (`receivers`) whenever the stack is started or a channel changes.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from cliffwatch.base import locks
from cliffwatch.base.durable import write_json_durably
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.base.regular_files import reading
from cliffwatch.model.settings import Settings

FILE = "notifications.json"
_LOCK = "notifications.lock"
#: Maximum length of a secret: longer than any address or key.
_SECRET_BYTES = 4096


class ChannelKind(StrEnum):
    """Kind of service that carries a notification."""

    SLACK = "slack"
    EMAIL = "email"
    WEBHOOK = "webhook"
    PAGERDUTY = "pagerduty"


class Occasion(StrEnum):
    """Occasion of a notification; docs/notifications.md lists the alerts of each."""

    CLIFF = "cliff"
    DEGRADATION = "degradation"
    TROUBLE = "trouble"
    FINISHED = "finished"
    INVALID = "invalid"


class Channel(BaseModel):
    """A notification channel. `url_file` is the absolute path of the file with its secret (`secret_of`)."""

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


@contextmanager
def changing_channels(settings: Settings) -> Iterator[None]:
    """Keep other processes from changing the channels between reading and writing them. Raises OSError."""
    settings.state_directory.mkdir(parents=True, exist_ok=True)
    descriptor = locks.hold(settings.state_directory / _LOCK)
    try:
        yield
    finally:
        os.close(descriptor)


def write_channels(settings: Settings, channels: Sequence[Channel]) -> None:
    """Replace the channels of a state directory, durably; within `changing_channels`. Raises OSError."""
    document = _Channels(channels=tuple(channels)).model_dump(mode="json")
    write_json_durably(settings.state_directory / FILE, document)


def secret_of(channel: Channel) -> str:
    """Address or key in a channel's file. Raises Problem(bad_request) that names the file and what belongs there."""
    path = channel.url_file
    try:
        with reading(path) as file:
            text = file.read(_SECRET_BYTES + 1).decode().strip(" \t\n\r")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Problem(Code.BAD_REQUEST, f"--url-file: {path} cannot be read: {reason}") from error
    fault = f"is longer than {_SECRET_BYTES} bytes" if len(text) > _SECRET_BYTES else _fault_in(channel.kind, text)
    if fault is not None:
        raise Problem(Code.BAD_REQUEST, f"--url-file: {path} {fault}")
    return text


def with_secrets(channels: Iterable[Channel]) -> tuple[dict[Channel, str], list[str]]:
    """Channels with their secrets, and messages on channels whose secret cannot be read.

    A channel that cannot be read does not keep the others from their notifications.
    """
    found: dict[Channel, str] = {}
    faults = []
    for channel in channels:
        try:
            found[channel] = secret_of(channel)
        except Problem as problem:
            faults.append(f"nothing is sent to {channel.name}: {problem.detail}")
    return found, faults


def usable_channels(settings: Settings) -> tuple[dict[Channel, str], list[str]]:
    """The channels of a state directory as `with_secrets` returns them; without any where their file is damaged."""
    try:
        channels = read_channels(settings)
    except Problem as problem:
        return {}, [f"nothing is sent to any channel: {problem.detail}"]
    return with_secrets(channels)


def _fault_in(kind: ChannelKind, text: str) -> str | None:
    """Fault in the content of a channel's file, without quoting it; None if there is none."""
    if not text.isascii() or not text.isprintable() or " " in text:
        return "has to hold one word in ASCII"
    if kind is ChannelKind.PAGERDUTY:
        return None if text.isalnum() else "has to hold an integration key, which is letters and digits"
    try:
        url = urlsplit(text)
        host, _ = url.hostname, url.port
    except ValueError:
        return "does not hold a URL"
    # Decoded, they are headers of a mail and words of a protocol.
    if not unquote(text).isprintable():
        return "holds a control character, such as %0A, which no address has"
    if kind is not ChannelKind.EMAIL:
        return None if url.scheme in ("http", "https") and host else "has to hold a URL that begins with https://"
    query = parse_qs(url.query)
    is_whole = url.scheme in ("smtp", "smtps") and host and query.get("from") and query.get("to")
    return None if is_whole else "has to hold smtp://USER:PASSWORD@HOST:PORT/?from=ADDRESS&to=ADDRESS (or smtps://)"


def mail_of(url: str) -> dict[str, object]:
    """Fields of Alertmanager's `email_configs` from a URL that `secret_of` accepted.

    With `smtp`, TLS is required of the server, unless that is this machine; with `smtps`, the connection begins with
    TLS.
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
