"""Limit the distinct names in a run's windows: each costs memory in the worker and space in the report."""

from cliffwatch.model.window import NAMES_LIMITS, EngineWindow


class NameLimit:
    """Limit on the names of a run's windows: of each kind, the first `NAMES_LIMITS[kind]` names are kept."""

    def __init__(self) -> None:
        self._known: dict[str, set[str]] = {kind: set() for kind in NAMES_LIMITS}
        self._told: set[str] = set()

    def fit(self, window: EngineWindow) -> list[str]:
        """Remove names beyond the limit from a window; returns the kinds of name that exceed it for the first time."""
        news = []
        for kind, known in self._known.items():
            values: dict[str, object] = getattr(window, kind)
            room = NAMES_LIMITS[kind] - len(known)
            fresh = [name for name in values if name not in known]
            known.update(fresh[:room])
            for name in fresh[room:]:
                del values[name]
            if len(fresh) > room and kind not in self._told:
                self._told.add(kind)
                news.append(kind)
        return news
