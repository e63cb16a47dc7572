"""Runs of the index, page by page."""

from dataclasses import dataclass

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


def listed_rows(
    services: Services,
    state: RunState | None,
    workload: str | None,
    verdict: VerdictName | None,
    limit: int,
    page: str | None,
) -> ListedRows:
    """Page of runs. Raises Problem(page_token_invalid)."""
    after = decode_page(page, _SORT, _KEY)
    with services.database.snapshot() as session:
        rows = runs_page(
            session, limit + 1, after, state.value if state else None, workload, verdict.value if verdict else None
        )
    return ListedRows(rows[:limit], next_token(rows, limit, _SORT, lambda row: (row.created_at, row.id)))
