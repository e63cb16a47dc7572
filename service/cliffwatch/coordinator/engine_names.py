"""How many names a run's measurements have: each costs memory for as long as the run goes on, and in its report."""

from cliffwatch.model.window import NAMES_LIMITS, EngineWindow


class NameLimit:
    """Lets the names of a run pass that came first, as many of each kind as `NAMES_LIMITS` says."""

    def __init__(self) -> None:
        self._known: dict[str, set[str]] = {kind: set() for kind in NAMES_LIMITS}
        self._told: set[str] = set()

    def fit(self, window: EngineWindow) -> list[str]:
        """Take out of the window what has a name beyond those; of which kinds, where that is the first time."""
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
