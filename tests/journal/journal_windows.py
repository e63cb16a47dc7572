"""Windows in a journal."""

from pathlib import Path

from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import JournalReader, WindowLog
from cliffwatch.model.window import EngineWindow

START = 1_790_000_000.0


def window(seq: int, seconds: float = 10.0) -> EngineWindow:
    histogram = Histogram.from_values({(seq + 1) * 1_000_000: 100, 9_000_000_000: 1})
    start = START + seq * seconds
    return EngineWindow(
        start,
        start + seconds,
        {"operations": 101, "bytes": 101, "errors": 0},
        {},
        {"append": histogram, "sync": histogram},
    )


def write(directory: Path, count: int) -> None:
    log = WindowLog(directory, START)
    first = 0 if log.last is None else log.last.seq + 1
    for seq in range(first, first + count):
        log.append(window(seq), "soak")
    log.close()


def seqs(directory: Path) -> list[int]:
    return [committed.seq for committed in JournalReader(directory).windows()]
