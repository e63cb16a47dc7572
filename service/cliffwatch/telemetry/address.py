"""Address and credentials of the Prometheus to query: the service's (by default its watchers'), or yours by name.

Your own servers are in a YAML file that CLIFFWATCH_PROMETHEUS_SERVERS points to, by the names that requests use:

    staging:
      url: https://prometheus.example.org
      bearer_token_file: /etc/cliffwatch/staging-token
      ca_file: /etc/cliffwatch/ca.pem

Secrets are in separate files, which are read for each connection, so that they can be renewed.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, TypeAdapter, ValidationError, model_validator

from cliffwatch.base.documents import read_yaml, why_unreadable
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.base.suggestion import did_you_mean
from cliffwatch.model.document import Name, Strict
from cliffwatch.model.settings import Settings
from cliffwatch.model.target import AbsolutePath

_SETTING = "CLIFFWATCH_PROMETHEUS_SERVERS"
#: Characters that are read of a secret's file at most; longer than any token.
_SECRET_CHARACTERS = 65_536


@dataclass(frozen=True, slots=True)
class PrometheusAddress:
    """URL of a Prometheus, with the credentials and CA file for it; None for those that it does not need."""

    url: str
    bearer_token_file: str | None = None
    username: str | None = None
    password_file: str | None = None
    ca_file: str | None = None


def _http_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("write an address such as https://prometheus.example.org")
    if parts.username or parts.password:
        raise ValueError("write `username` and `password_file` instead of a user in the address")
    return url


class _Server(Strict):
    url: Annotated[str, AfterValidator(_http_url)]
    bearer_token_file: AbsolutePath | None = None
    username: str | None = None
    password_file: AbsolutePath | None = None
    ca_file: AbsolutePath | None = None

    @model_validator(mode="after")
    def _one_proof(self) -> Self:
        if (self.username is None) != (self.password_file is None):
            raise ValueError("`username` and `password_file` belong together; give both or none")
        if self.username is not None and self.bearer_token_file is not None:
            raise ValueError("give either `bearer_token_file` or `username` and `password_file`")
        return self


_SERVERS: TypeAdapter[dict[str, _Server]] = TypeAdapter(dict[Name, _Server])


def read_addresses(path: Path) -> dict[str, PrometheusAddress]:
    """The servers of a file, by name. Raises Problem(bad_request) that names the file, and each field that is wrong."""
    try:
        servers = _SERVERS.validate_python(read_yaml(path) or {})
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        fault = FieldFault(_SETTING, f"{path}: {why_unreadable(error)}")
        raise Problem(Code.BAD_REQUEST, "the Prometheus servers cannot be read", [fault]) from error
    except ValidationError as error:
        raise Problem(Code.BAD_REQUEST, f"{path}, which {_SETTING} names, is not valid", faults_of(error)) from error
    return {name: PrometheusAddress(**server.model_dump()) for name, server in servers.items()}


def address_of(settings: Settings, name: str | None = None) -> PrometheusAddress | None:
    """Address of the server `name`; without a name, of the service's Prometheus, None where none is configured.

    Raises Problem(bad_request) as `named_address` does.
    """
    if name is None:
        return None if settings.prometheus_url is None else PrometheusAddress(settings.prometheus_url)
    return named_address(settings, name, "drives.server")


def named_address(settings: Settings, name: str, field: str) -> PrometheusAddress:
    """Address of the server `name`, which stands in `field`.

    Raises Problem(bad_request) for an unknown name, or a file of servers that is not valid.
    """
    path = settings.prometheus_servers
    known = {} if path is None else read_addresses(path)
    if name not in known:
        where = f"{path} has {', '.join(sorted(known)) or 'none'}" if path else f"set {_SETTING} to a file of servers"
        fault = FieldFault(field, f"{name!r} is no Prometheus that is known; {where}{did_you_mean(name, known)}")
        raise Problem(Code.BAD_REQUEST, "the Prometheus is not known", [fault])
    return known[name]


def secret_in(path: str) -> str:
    """Read the secret in a file, without surrounding white space. Raises OSError, UnicodeDecodeError."""
    with Path(path).open(encoding="utf-8") as file:
        return file.read(_SECRET_CHARACTERS).strip()
