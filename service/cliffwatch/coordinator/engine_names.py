"""Limit the distinct names in a run's windows: each costs memory in the worker and space in the report."""

from cliffwatch.model.window import NAMES_LIMITS, EngineWindow


class NameLimit:
    """Limit on the names of a run's windows: of each kind, the first names are kept, `limits[kind]` of them.

    `parts`: the number of the run's parts. The merged window of several has the names of all, beside its own.
    """

    def __init__(self, parts: int = 1) -> None:
        shares = 1 if parts == 1 else 1 + parts
        self.limits = {kind: shares * limit for kind, limit in NAMES_LIMITS.items()}
        self._known: dict[str, set[str]] = {kind: set() for kind in NAMES_LIMITS}
        self._told: set[str] = set()

    def fit(self, window: EngineWindow) -> list[str]:
        """Remove names beyond the limit from a window; returns the kinds of name that exceed it for the first time."""
        news = []
        for kind, known in self._known.items():
            values: dict[str, object] = getattr(window, kind)
            room = self.limits[kind] - len(known)
            fresh = [name for name in values if name not in known]
            known.update(fresh[:room])
            for name in fresh[room:]:
                del values[name]
            if len(fresh) > room and kind not in self._told:
                self._told.add(kind)
                news.append(kind)
        return news
