"""Targets of a run: a directory, a drive, brokers, a database, a system that others load, or nothing at all."""

import json
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, field_validator

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.base.suggestion import did_you_mean
from cliffwatch.model.address import address
from cliffwatch.model.document import Name, Strict
from cliffwatch.model.dsn import Dsn

#: Longest path that the kernel takes.
_PATH_LIMIT = 4096


class DirectoryTarget(Strict):
    """Fresh files in a directory of their own below `path`."""

    kind: Literal["directory"] = "directory"
    path: Annotated[str, Field(pattern=r"^/", max_length=_PATH_LIMIT)]

    def __str__(self) -> str:
        return f"directory:{self.path}"


class DeviceTarget(Strict):
    """A whole block device, named by serial, WWN or (a loop device) backing file. Everything on it is lost.

    `confirmation` is the sentence that the dry run prints, typed by the user who starts the run.
    """

    kind: Literal["device"] = "device"
    identity: Annotated[str, Field(min_length=1, max_length=_PATH_LIMIT)]
    confirmation: Annotated[str, Field(max_length=_PATH_LIMIT)] = ""

    def __str__(self) -> str:
        return f"device:{self.identity}"


class SyntheticTarget(Strict):
    """No drive at all: what the synthetic engine pretends to load."""

    kind: Literal["synthetic"] = "synthetic"
    name: Name

    def __str__(self) -> str:
        return f"synthetic:{self.name}"


class ObservedTarget(Strict):
    """A system that others load, by a name for people: the run only reads its metrics."""

    kind: Literal["observed"] = "observed"
    name: Name

    def __str__(self) -> str:
        return f"observed:{self.name}"


AbsolutePath = Annotated[str, Field(pattern=r"^/", max_length=_PATH_LIMIT)]


class BrokerTarget(Strict):
    """Brokers that speak the Kafka protocol; one of `bootstrap_servers` that answers is enough.

    Where brokers are on this machine, `data_directories` says where they keep their data: nothing is written there by
    the run, but the drives below are watched.
    """

    kind: Literal["broker"] = "broker"
    bootstrap_servers: Annotated[list[str], Field(min_length=1, max_length=100)]
    data_directories: list[AbsolutePath] = Field(default=[], max_length=100)

    @field_validator("bootstrap_servers")
    @classmethod
    def _servers_are_addresses(cls, servers: list[str]) -> list[str]:
        return [address(server) for server in servers]

    def __str__(self) -> str:
        return f"broker:{','.join(self.bootstrap_servers)}{_directories_text(self.data_directories)}"


#: Schema in which a load makes its tables; it exists during a run only.
DATABASE_SCHEMA = "cliffwatch"


class PostgresTarget(Strict):
    """An empty database of a PostgreSQL server, by its URI without a password.

    Where the server is on this machine, `data_directories` says where its data and its WAL are: nothing is written
    there by the run, but the drives below are watched.
    """

    kind: Literal["postgres"] = "postgres"
    dsn: Annotated[str, Field(max_length=_PATH_LIMIT)]
    data_directories: list[AbsolutePath] = Field(default=[], max_length=100)

    @field_validator("dsn")
    @classmethod
    def _dsn_in_one_form(cls, dsn: str) -> str:
        return str(Dsn.parse(dsn))

    @property
    def database(self) -> Dsn:
        """The database, parsed."""
        return Dsn.parse(self.dsn)

    def __str__(self) -> str:
        return f"postgres:{self.dsn.removeprefix('postgresql:')}{_directories_text(self.data_directories)}"


def _directories_text(directories: list[str]) -> str:
    return f"@{','.join(directories)}" if directories else ""


AnyTarget = DirectoryTarget | DeviceTarget | SyntheticTarget | BrokerTarget | PostgresTarget | ObservedTarget


Target = Annotated[AnyTarget, Field(discriminator="kind")]


_TARGET: TypeAdapter[AnyTarget] = TypeAdapter(Target)
_TEXTS = TypeAdapter(Annotated[list[str], Field(min_length=1)])


def bootstrap_servers_of(target: AnyTarget) -> tuple[str, ...]:
    """Bootstrap servers of a target's brokers; none for a target without brokers."""
    return tuple(target.bootstrap_servers) if isinstance(target, BrokerTarget) else ()


#: Kinds of target whose bytes cannot be compared with a drive's.
WITHOUT_DRIVE = frozenset({"synthetic", "broker", "postgres", "observed"})


def parse_target(text: str) -> AnyTarget:
    """A target from its text, such as `directory:/path`, `broker:HOST:PORT,…@/data,…` or
    `postgres://USER@HOST:PORT/DATABASE@/data,…`.

    Raises Problem(bad_request).
    """
    kind, _, rest = text.partition(":")
    body: dict[str, Any] = {"kind": kind}
    if kind == "broker":
        servers, _, directories = rest.partition("@")
        body |= {
            "bootstrap_servers": servers.split(","),
            "data_directories": _directories_in(directories),
        }
    elif kind in {"postgres", "postgresql"} and rest:
        # The database's name comes after a slash, and has its own @ and slashes percent-encoded.
        database = _DATABASE.match(rest)
        end = len(rest) if database is None else database.end()
        dsn = rest[:end] if rest.startswith(("postgresql:", "postgres:")) else f"postgresql:{rest[:end]}"
        body = {"kind": "postgres", "dsn": dsn, "data_directories": _directories_in(rest[end:].removeprefix("@"))}
    elif kind in _TARGET_FIELDS and rest:
        body[_TARGET_FIELDS[kind]] = rest
    else:
        *first, final = TARGET_FORMS.values()
        message = f"{text!r} is not a target; write {', '.join(first)} or {final}{did_you_mean(kind, TARGET_FORMS)}"
        raise Problem(Code.BAD_REQUEST, "the target cannot be understood", [FieldFault("target", message)])
    try:
        return _TARGET.validate_python(body)
    except ValidationError as error:
        raise Problem(Code.BAD_REQUEST, "the target is not valid", faults_of(error, "target")) from error


def targets_text(targets: Iterable[AnyTarget]) -> str:
    """Targets as one text: a single one as `parse_target` reads it, several as a JSON array of such texts."""
    texts = [str(target) for target in targets]
    return texts[0] if len(texts) == 1 else json.dumps(texts)


def parse_targets(text: str) -> tuple[AnyTarget, ...]:
    """Targets from a text that `targets_text` made. Raises Problem(bad_request)."""
    if not text.startswith("["):
        return (parse_target(text),)
    try:
        texts = _TEXTS.validate_json(text)
    except ValidationError as error:
        raise Problem(Code.BAD_REQUEST, "the targets cannot be understood", faults_of(error, "target")) from error
    return tuple(map(parse_target, texts))


def shown_targets(targets: Iterable[AnyTarget]) -> str:
    """Targets as text for people, joined with a plus sign."""
    return " + ".join(map(str, targets))


#: A database of a target's text: up to the `@/` behind its name.
_DATABASE = re.compile(r"(?:postgres(?:ql)?:)?//[^/]*/[^@]*(?=@/)")


def _directories_in(text: str) -> list[str]:
    """Data directories, separated by commas."""
    # Only before a slash: a comma may be part of a directory's name.
    return re.split(r",(?=/)", text) if text else []


_TARGET_FIELDS = {"directory": "path", "device": "identity", "synthetic": "name", "observed": "name"}


#: How a target of each kind is written.
TARGET_FORMS = {
    "directory": "directory:/path",
    "device": "device:SERIAL",
    "synthetic": "synthetic:NAME",
    "broker": "broker:HOST:PORT",
    "postgres": "postgres://USER@HOST:PORT/DATABASE",
    "observed": "observed:NAME",
}


#: Names of a request's fields for users, with the option that sets each.
_FIELD_WORDS = {
    "drives": "drives of other hosts (--drives)",
    "drives.selector": "drives of other hosts (--drives)",
    "drives.server": "Prometheus of the drives (--prometheus)",
    "target": "target",
    "target.bootstrap_servers": "brokers (--target broker:HOST:PORT)",
    "target.dsn": "database (--target postgres://USER@HOST:PORT/DATABASE)",
    "target.confirmation": "confirmation (--confirm)",
    "target.identity": "drive (--target device:SERIAL)",
    "target.path": "directory (--target directory:/path)",
}


def field_words(field: str) -> str:
    """A field of a request in words, with the option that sets it; any other field as it is."""
    return _FIELD_WORDS.get(field, field)
