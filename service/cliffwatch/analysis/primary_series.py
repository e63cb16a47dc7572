"""Primary series of a run, which findings are about: one quantile of each operation; and the rank of series."""

from collections.abc import Sequence

from cliffwatch.analysis.finding import Role, Series
from cliffwatch.model.operation import Operation

#: Operations by rank: those that a client waits for come before those that they cause.
_ORDER = [operation.value for operation in Operation]
#: Quantiles in order of preference: findings are about the first of them that is measured.
PREFERRED_QUANTILES = (0.99, 0.999, 0.95, 0.9, 0.5, 0.9999)


def rank_of(series: Series) -> tuple[bool, int, int, str]:
    """Rank of a series among those that changed together; findings name the one with the lowest rank: the client before
    devices, what a client waits for before its parts, p99 before other quantiles."""
    operation = _ORDER.index(series.operation) if series.operation in _ORDER else len(_ORDER)
    return (series.role is not Role.LATENCY, operation, _preference(series), series.name)


def primary_series(series: Sequence[Series]) -> list[str]:
    """Names of the series that findings are about: one quantile of each operation, or devices where no latency is
    measured."""
    operations: dict[str | None, list[Series]] = {}
    for one in series:
        if one.role is Role.LATENCY:
            operations.setdefault(one.operation, []).append(one)
    if not operations:
        return [one.name for one in series if one.role is Role.DEVICE_LATENCY]
    return [min(group, key=_preference).name for group in operations.values()]


def _preference(series: Series) -> int:
    known = series.quantile is not None and series.quantile in PREFERRED_QUANTILES
    return PREFERRED_QUANTILES.index(series.quantile) if known and series.quantile is not None else 9
