"""The service's settings, from its environment; every variable begins with CLIFFWATCH_."""

import os
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.base.units import Duration

PREFIX = "CLIFFWATCH_"
#: The databases that migrations and tests cover, as they begin a URL.
_DIALECTS = ("sqlite", "postgresql+psycopg")
Port = Annotated[int, Field(ge=1, le=65_535)]


class Settings(BaseSettings):
    """Settings of the service: directories, database, addresses, ports, retention. Paths are made absolute."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True, validate_default=False)

    state_directory: Path = Path(".cliffwatch")
    #: Below the state directory unless set.
    runs_directory: Path = Path()
    database_url: str = ""
    listen_host: str = "127.0.0.1"
    listen_port: Annotated[int, Field(ge=0, le=65_535)] = 9899
    #: URL at which users reach the pages, such as a proxy's; the address that the service listens on unless set.
    public_url: Annotated[str, Field(pattern=r"^(https?://\S+)?$")] = ""
    #: How late a schedule may still fire: the machine was busy or slept, the service was not down.
    misfire_grace: Annotated[Duration, Field(ge=1, le=86_400)] = 60.0
    #: For how long runs are kept once they were seen to be over, unless they are pinned; for ever unless set.
    retention: Annotated[Duration, Field(ge=3600)] | None = None
    #: Whether `cliffwatch up` starts Prometheus, Alertmanager and the exporters too.
    watchers: bool = True
    prometheus_port: Port = 9890
    #: URL of the Prometheus server to query about runs and drives: the local one unless set; empty for none.
    prometheus_url: str | None = None
    #: YAML file of further Prometheus servers, by name: telemetry/address.py.
    prometheus_servers: Path | None = None
    node_exporter_port: Port = 9891
    ebpf_exporter_port: Port = 9892
    alertmanager_port: Port = 9893
    drive_exporter_port: Port = 9895

    @field_validator("retention", "prometheus_servers", mode="before")
    @classmethod
    def _nothing_is_none(cls, value: object) -> object:
        # An environment that passes on unset variables has them empty.
        return None if value == "" else value

    @field_validator("database_url")
    @classmethod
    def _database_is_supported(cls, value: str) -> str:
        if value == "":
            return value
        # Every worker and command reads settings; SQLAlchemy takes as long to import as all else of it.
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            supported = make_url(value).drivername in _DIALECTS
        except ArgumentError:
            supported = False
        if not supported:
            raise ValueError(
                "this is not a database URL that the service knows; write sqlite:////path/to/file or "
                "postgresql+psycopg://user@host/database"
            )
        return value

    @model_validator(mode="after")
    def _fill_in(self) -> Self:
        state = self.state_directory.expanduser().absolute()
        filled = {
            "state_directory": state,
            "runs_directory": (
                self.runs_directory.expanduser().absolute() if self.runs_directory != Path() else state / "runs"
            ),
            "prometheus_url": (
                f"http://127.0.0.1:{self.prometheus_port}" if self.prometheus_url is None else self.prometheus_url
            )
            or None,
            "public_url": self.public_url.rstrip("/") or f"http://{self.listen_host}:{self.listen_port}",
            "prometheus_servers": (
                None if self.prometheus_servers is None else self.prometheus_servers.expanduser().absolute()
            ),
            "database_url": self.database_url or f"sqlite:///{state / 'cliffwatch.sqlite3'}",
        }
        # The model is frozen for everyone but this validator.
        self.__dict__.update(filled)
        return self


def read_settings(**given: object) -> Settings:
    """Settings from the environment; `given` overrides it. Raises Problem(bad_request) naming the variables."""
    try:
        return Settings(**given)  # type: ignore[arg-type]  # pydantic checks what the environment gives too
    except ValidationError as error:
        faults = [FieldFault(PREFIX + fault.field.upper(), fault.message) for fault in faults_of(error)]
        raise Problem(Code.BAD_REQUEST, "the service's settings are not valid", faults) from error


def environment_of_children() -> dict[str, str]:
    """Environment for child processes: without the service's settings, which may hold secrets."""
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
