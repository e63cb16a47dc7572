"""Figures of a run as the index keeps them."""

from pydantic import TypeAdapter, ValidationError

from cliffwatch.report.figures import RunFigures
from cliffwatch.store.models import RunRow

_FIGURES = TypeAdapter(RunFigures)


def stored_figures(row: RunRow) -> RunFigures | None:
    """Figures of a run's report; None before it is made, and for damaged ones."""
    try:
        return _FIGURES.validate_python(row.figures)
    except ValidationError:
        return None
