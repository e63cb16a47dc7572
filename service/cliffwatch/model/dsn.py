"""Addresses of PostgreSQL databases: URIs of libpq, without a password."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, unquote, urlsplit

DEFAULT_PORT = 5432
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_FORM = "write postgresql://USER@HOST:PORT/DATABASE, or postgresql://USER@/DATABASE?host=/DIRECTORY for a Unix socket"


@dataclass(frozen=True, slots=True)
class Dsn:
    """A database of a PostgreSQL server, and the user to connect as. `host` is the directory of a Unix socket where it
    begins with a slash."""

    user: str
    host: str
    port: int
    database: str

    @classmethod
    def parse(cls, text: str) -> "Dsn":
        """Parse a URI as libpq reads it (PostgreSQL's documentation, "Connection URIs"). Raises ValueError."""
        if _CONTROL.search(text):
            raise ValueError(f"a control character is in it; {_FORM}")
        parts = urlsplit(text)
        if parts.scheme not in {"postgresql", "postgres"} or parts.fragment:
            raise ValueError(f"it is no address of a database; {_FORM}")
        if parts.password is not None:
            raise ValueError("a password would be in every journal: put it into a file that load.password_file names")
        if "@" in parts.path:
            raise ValueError("a data directory behind the database begins with a slash; in a name, write %40 for @")
        authority = parts.netloc.rpartition("@")[2]
        bracketed = re.fullmatch(r"\[([^\[\]]+)\](?::(\d+))?", authority)
        host, _, port = authority.partition(":") if bracketed is None else (bracketed[1], "", bracketed[2] or "")
        host, socket = unquote(host), _socket_in(parts.query)
        if (not host) == (not socket):
            raise ValueError(f"it names {'two hosts' if host else 'no host'}; {_FORM}")
        found = cls(
            user=unquote(parts.username or ""),
            host=host or socket,
            port=_port(port),
            database=unquote(parts.path.removeprefix("/")),
        )
        if not found.user or not found.database:
            raise ValueError(f"it names no {'database' if found.user else 'user'}; {_FORM}")
        return found

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host and not self.is_socket else quote(self.host, safe="")
        return f"postgresql://{quote(self.user, safe='')}@{host}:{self.port}/{quote(self.database, safe='')}"

    @property
    def is_socket(self) -> bool:
        """Whether the server is reached through a Unix socket of this machine."""
        return self.host.startswith("/")

    @property
    def server(self) -> str:
        """The server as HOST:PORT."""
        return f"{self.host}:{self.port}"


def _port(text: str) -> int:
    if not text:
        return DEFAULT_PORT
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65_535:
        raise ValueError(f"{text[:20]!r} is no port; {_FORM}")
    return int(text)


def _socket_in(query: str) -> str:
    """The directory of a Unix socket that a URI's query names; empty without one. Raises ValueError."""
    given = parse_qs(query, keep_blank_values=True)
    if unknown := sorted(set(given) - {"host"}):
        raise ValueError(f"the parameter {unknown[0][:40]!r} is not known; only host=/DIRECTORY is")
    directory = given.get("host", [""])[-1]
    if given and not directory.startswith("/"):
        raise ValueError("the parameter `host` names the directory of a Unix socket, which begins with a slash")
    return directory
