"""Which windows are judged: none of those in which a run prepares, and none shortly after what explains a change."""

from cliffwatch.detect.finding import Sample
from cliffwatch.detect.spans import NOTICE_MASK

#: Phases in which nothing is judged.
UNJUDGED = frozenset({"prepare", "warm_up", "cool_down"})


class Mask:
    """Counts windows as they come; `window` is how many there were."""

    def __init__(self) -> None:
        self.window = 0
        self._masked_until = 0

    def notice(self) -> None:
        """Of a restart or the like, before the window in which it happened."""
        self._masked_until = self.window + NOTICE_MASK

    def is_judged(self, sample: Sample) -> bool:
        """Count a window."""
        self.window += 1
        return sample.phase not in UNJUDGED and self.window > self._masked_until
