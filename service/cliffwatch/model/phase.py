"""The phases of a run."""

from enum import StrEnum


class Phase(StrEnum):
    """Phases of a run, in order of time."""

    PREPARE = "prepare"
    WARM_UP = "warm_up"
    BASELINE = "baseline"
    SOAK = "soak"
    COOL_DOWN = "cool_down"


def phase_words(name: str) -> str:
    """A phase as people write it: `warm_up` is `warm-up`."""
    return name.replace("_", "-")


#: Phases in which the engine makes load.
LOAD_PHASES = (Phase.WARM_UP, Phase.BASELINE, Phase.SOAK)
#: Phases that limits, detection and the verdict are about.
JUDGED_PHASES = (Phase.BASELINE, Phase.SOAK)
#: Phases in which nothing is judged. A window whose phase is unknown is judged.
UNJUDGED_PHASES = frozenset(Phase) - frozenset(JUDGED_PHASES)
