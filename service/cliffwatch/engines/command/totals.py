"""Totals since a program's start, in place of counts since the line before."""

from collections.abc import Mapping

from cliffwatch.engines.command.definition import COUNT_GROUPS, TOTAL

#: A count that rose so often and never fell is a total.
_RISES = 20


class Totals:
    """Totals that lines state, as counts; and counts that must be totals, since they only grow."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._rises = dict.fromkeys(COUNT_GROUPS, 0)

    def counts(self, values: Mapping[str, float]) -> dict[str, float]:
        """Counts since the line before, of counts and totals. A total that fell began again."""
        found = {}
        for name in COUNT_GROUPS:
            if name in values:
                found[name] = values[name]
                self._watch(name, values[name])
            elif (total := values.get(name + TOTAL)) is not None:
                before = self._last.get(name, 0.0)
                found[name] = total - before if total >= before else total
                self._last[name] = total
        return found

    def _watch(self, name: str, value: float) -> None:
        before = self._last.get(name, value)
        self._last[name] = value
        if value < before:
            # Never again: a load that is raised for a while rises, and falls at last.
            self._rises[name] = -(2**62)
        elif value > before:
            self._rises[name] += 1

    @property
    def growing(self) -> str:
        """Name of a count that only grows; empty without one."""
        return next((name for name, rises in self._rises.items() if rises >= _RISES), "")
