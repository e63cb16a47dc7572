"""Restart policy for engines that die in a row: pause before the next one, and message when no other is started."""

from dataclasses import dataclass

from cliffwatch.base.retries import growing_pause_seconds

#: Pauses before an engine is started again, each twice as long as the one before.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0


@dataclass(slots=True)
class EngineDeaths:
    """Deaths in a row, counted from the engine that last measured anything. The first message is the cause; later ones
    may be its consequences, such as a file system that became read-only after a drive error."""

    in_a_row: int = 0
    first: str = ""
    last: str = ""

    def add(self, message: str, has_measured: bool) -> None:
        """Record a death and its message. An engine that measured for a while resets the pauses."""
        self.in_a_row = 1 if has_measured else self.in_a_row + 1
        self.first = message if self.in_a_row == 1 else self.first
        self.last = message

    @property
    def pause_seconds(self) -> float:
        """Pause until the next engine is started."""
        return growing_pause_seconds(self.in_a_row, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)

    def sentence(self, total: int) -> str:
        """Message why no further engine is started, after `total` deaths in the whole run."""
        if total == 1:
            return f"the engine died: {self.last}"
        began = f"it began with: {self.first}; " if self.first != self.last else ""
        return f"the engine died {total} times; {began}the last time: {self.last}"
