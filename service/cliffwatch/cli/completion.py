"""Shell completion of ids and names, from the service, or from this machine where the service does not answer.

Completion never fails and prints no message: what is unavailable is not offered.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cliffwatch.base.errors import Problem
from cliffwatch.cli.session import Session
from cliffwatch.journal import files

if TYPE_CHECKING:
    from cliffwatch.cli.client import ApiClient

_RUNS = 200


def runs(context: typer.Context, incomplete: str) -> list[str]:
    """`last` and ids of runs: newest first, or by name if the service does not answer."""
    session = _session(context)
    ids = _asked(session, lambda api: [run["id"] for run in api.list_all("/runs", _RUNS)])
    if ids is None:
        orders = _local(lambda: session.settings().runs_directory.glob(f"*/{files.ORDER}"))
        ids = sorted(path.parent.name for path in orders)
    return _fitting(["last", *ids], incomplete)


def workloads(context: typer.Context, incomplete: str) -> list[str]:
    """Names of workloads."""
    return _names(context, "/workloads", "name", incomplete)


def workloads_and_files(context: typer.Context, incomplete: str) -> list[str]:
    """Names of workloads, and paths of YAML files."""
    return [*workloads(context, incomplete), *_paths(incomplete, (".yaml", ".yml"))]


def schedules(context: typer.Context, incomplete: str) -> list[str]:
    """Names of schedules."""
    return _names(context, "/schedules", "name", incomplete)


def tokens(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of tokens."""
    return _names(context, "/tokens", "id", incomplete)


def drives(context: typer.Context, incomplete: str) -> list[str]:
    """Names of this machine's aging drives."""
    from cliffwatch.labs.aging.lifecycle import aging_drives

    session = _session(context)
    attached = _local(lambda: aging_drives(session.settings().state_directory))
    return _fitting([drive.name for drive in attached], incomplete)


def targets(context: typer.Context, incomplete: str) -> list[str]:
    """Kinds of target; after `directory:` the directories, after `device:` the stable identities of the drives."""
    from cliffwatch.model.target import TARGET_FORMS

    kind, separator, rest = incomplete.partition(":")
    if not separator:
        return _fitting([f"{kind}:" for kind in TARGET_FORMS], incomplete)
    if kind == "directory":
        return [f"directory:{path}" for path in _paths(rest, ())]
    if kind == "device":
        rows = _asked(_session(context), lambda api: api.get("/drives")["items"]) or []
        return _fitting([f"device:{identity}" for row in rows for identity in row["identities"]], incomplete)
    return []


def _names(context: typer.Context, path: str, key: str, incomplete: str) -> list[str]:
    rows = _asked(_session(context), lambda api: [row[key] for row in api.list_all(path)])
    return _fitting(rows or [], incomplete)


def _session(context: typer.Context) -> Session:
    """Session from the global options: the root callback, which usually creates it, does not run in completion."""
    given = context.find_root().params
    return Session(given.get("url"), given.get("token_file"), given.get("state_directory"), None)


def _asked(session: Session, question: "Callable[[ApiClient], Any]") -> list[Any] | None:
    """Result of a request to the service; None when the request fails."""
    try:
        with session.client() as api:
            return list(question(api))
    except Problem:
        return None


def _local(question: Callable[[], Iterable[Any]]) -> list[Any]:
    try:
        return list(question())
    except (Problem, OSError):
        return []


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _paths(incomplete: str, endings: tuple[str, ...]) -> list[str]:
    """Paths that begin with `incomplete`: directories, with a trailing slash, and files with one of the endings."""
    directory, _, beginning = incomplete.rpartition("/")
    base = f"{directory}/" if "/" in incomplete else ""
    found = []
    try:
        for path in sorted(Path(base or ".").iterdir()):
            is_hidden = path.name.startswith(".") and not beginning.startswith(".")
            if path.name.startswith(beginning) and not is_hidden:
                if path.is_dir():
                    found.append(f"{base}{path.name}/")
                elif path.name.endswith(endings):
                    found.append(f"{base}{path.name}")
    except OSError:
        return []
    return found
