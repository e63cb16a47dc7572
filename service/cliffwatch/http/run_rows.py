"""Runs of the index, page by page."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cliffwatch.http.context import Services
from cliffwatch.http.paging import decode_page, next_token
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.store.models import RunRow
from cliffwatch.store.queries import runs_page

_SORT, _KEY = "runs:created_at,id:descending", (float, str)


@dataclass(frozen=True, slots=True)
class ListedRows:
    """A page of the index, and the token of the next page."""

    items: list[RunRow]
    next_page: str | None


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Filter for listed runs; None matches any value, also of a label. A run must have all of the `labels`."""

    state: RunState | None = None
    workload: str | None = None
    verdict: VerdictName | None = None
    labels: Mapping[str, str | None] = field(default_factory=dict)


def listed_rows(services: Services, only: RunFilter, limit: int, page: str | None) -> ListedRows:
    """Page of runs. Raises Problem(page_token_invalid)."""
    after = decode_page(page, _SORT, _KEY)
    with services.database.snapshot() as session:
        rows = runs_page(session, limit + 1, after, only.state, only.workload, only.verdict, only.labels)
    return ListedRows(rows[:limit], next_token(rows, limit, _SORT, lambda row: (row.created_at, row.id)))
