"""How far a value is from a limit's bound, and on which side."""

from cliffwatch.base.units import format_ratio, format_share
from cliffwatch.model.limits import Limit

#: A value of at least so many times the bound is stated as its ratio, which is easier to read than 694 %.
_AS_RATIO = 3.0


def is_beyond(limit: Limit, value: float) -> bool:
    bound = limit.bound or 0.0
    return value < bound if limit.is_least else value > bound


def margin(limit: Limit, value: float | None) -> str:
    """Text of how far a value is from the limit's bound, and on which side; empty without a value or a bound."""
    if value is None or not limit.bound:
        return ""
    if value / limit.bound >= _AS_RATIO:
        return f"{format_ratio(value / limit.bound)} the bound"
    where = "below" if value < limit.bound else "above"
    return f"{format_share(abs(value - limit.bound) / limit.bound)} {where} the bound"
