"""View of a run's merged windows that shows one part's own counters, gauges and latencies."""

from dataclasses import replace

from cliffwatch.journal import JournalWindow
from cliffwatch.model.drive_id import drive_figure
from cliffwatch.model.part_names import of_part
from cliffwatch.model.window import OLDEST_OUTSTANDING


def as_part(window: JournalWindow, part: str) -> JournalWindow:
    """A window with the counters and gauges of one part under their own names, with the totals of its drives, and with
    no latency but the part's."""
    prefix = of_part(part, "")
    counters = {name.removeprefix(prefix): value for name, value in window.counters.items() if name.startswith(prefix)}
    for of_drive, count in [(drive_figure(name), count) for name, count in counters.items()]:
        if of_drive is not None:
            total = f"device_{of_drive[1]}"
            counters[total] = counters.get(total, 0) + count
    own = {name.removeprefix(prefix): value for name, value in window.gauges.items() if name.startswith(prefix)}
    shared = {name: value for name, value in window.gauges.items() if name != OLDEST_OUTSTANDING}
    latency = {name: summary for name, summary in window.latency.items() if name.startswith(prefix)}
    return replace(window, counters=counters, gauges=shared | own, latency=latency)
