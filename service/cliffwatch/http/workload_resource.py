"""Stored workloads, as the API and the pages list them."""

from typing import Any

from pydantic import BaseModel, ValidationError

from cliffwatch.app.workloads import target_kinds_of
from cliffwatch.http.context import Services
from cliffwatch.http.paging import Page, decode_page, page_of
from cliffwatch.http.times import Time
from cliffwatch.model.workload import Phases
from cliffwatch.store.models import WorkloadRow
from cliffwatch.store.queries import workloads_page

_SORT, _KEY = "workloads:name", (str,)


class WorkloadBody(BaseModel):
    """A version of a workload. `lasts`: the length of each phase in words; `target_kinds`: the kinds of target that its
    engine loads. Both are empty for a document that is not valid."""

    name: str
    version: int
    engine: str
    description: str
    lasts: str
    target_kinds: list[str]
    document: dict[str, Any]
    created_at: Time


def workload_body(row: WorkloadRow) -> WorkloadBody:
    """API body of a workload's row. An unreadable row is shown too, with an empty document; a run of it is refused."""
    document: dict[str, Any] = row.document if isinstance(row.document, dict) else {}
    return WorkloadBody(
        name=row.name,
        version=row.version,
        engine=str(document.get("engine", "")),
        description=str(document.get("description", "")),
        lasts=_lasts(document),
        target_kinds=target_kinds_of(str(document.get("engine", ""))),
        document=document,
        created_at=row.created_at,
    )


def _lasts(document: dict[str, Any]) -> str:
    try:
        return Phases.model_validate(document.get("phases")).words
    except ValidationError:
        return ""


def listed_workloads(services: Services, limit: int, page: str | None = None) -> Page[WorkloadBody]:
    """The newest version of each workload, by name. Raises Problem(page_token_invalid)."""
    after = decode_page(page, _SORT, _KEY)
    with services.database.snapshot() as session:
        rows = workloads_page(session, limit + 1, after)
    return page_of(rows, limit, _SORT, lambda row: [row.name], workload_body)
