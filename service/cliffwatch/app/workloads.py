"""Workload service: check, store and look up workloads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.storable import check_text
from cliffwatch.engines.registry import ENGINES, checked_workload, load_of
from cliffwatch.model.workload import Workload, parse_workload, workload_document
from cliffwatch.store.database import Database
from cliffwatch.store.models import WorkloadRow
from cliffwatch.store.workloads import add_built_in, put_workload, require_workload


def target_kinds_of(engine: str) -> list[str]:
    """Kinds of target that an engine loads, sorted; none for an unknown one."""
    return sorted(ENGINES[engine].target_kinds) if engine in ENGINES else []


def check_document(document: dict[str, Any]) -> Workload:
    """Check a workload; returns it with every default filled in. Raises Problem(workload_invalid)."""
    try:
        check_text(document)
    except ValueError as error:
        raise Problem(Code.WORKLOAD_INVALID, f"the workload is not valid: {error}") from error
    return checked_workload(document)


def check_yaml(text: str) -> Workload:
    """Check a workload that is written as YAML, as `check_document` does."""
    return check_document(workload_document(text))


@dataclass(frozen=True, slots=True)
class WorkloadService:
    """Workloads as rows of the database, by name and version."""

    database: Database
    clock: Clock

    def find(self, name: str, version: int | None = None) -> WorkloadRow:
        """A version of a workload, by default the newest. Raises Problem(not_found)."""
        with self.database.snapshot() as session:
            return require_workload(session, name, version)

    def put(self, name: str, document: dict[str, Any]) -> tuple[WorkloadRow, bool]:
        """Store a workload as a new version of its name; returns its row, and False if it equals the newest version.

        Raises Problem(workload_invalid), also where the document has another name.
        """
        workload = check_document(document)
        if workload.name != name:
            fault = FieldFault("name", f"the document says {workload.name!r}, the path {name!r}; make them the same")
            raise Problem(Code.WORKLOAD_INVALID, "the workload's name is not that of the path", [fault])
        with self.database.session() as session:
            return put_workload(session, workload, self.clock.wall())

    def add_built_in(self, directory: Path) -> None:
        """Store the workloads that come with the program, from the YAML files in `directory`."""
        with self.database.session() as session:
            for path in sorted(directory.glob("*.yaml")):
                workload = parse_workload(path.read_text(encoding="utf-8"))
                load_of(workload)
                add_built_in(session, workload, self.clock.wall())
