"""Rates of counters over windows: over the time in which they were counted, and no other."""

from testkit.recorded_runs import LOAD_START

from cliffwatch.journal import JournalWindow
from cliffwatch.model.window import DRIVES_SPAN
from cliffwatch.report.onset_spans import rate_of


def window(seq: int, counters: dict[str, int], gauges: dict[str, float] | None = None) -> JournalWindow:
    start = LOAD_START + 10.0 * seq
    return JournalWindow(seq, start, start + 10.0, "soak", counters, gauges or {}, {}, (0, 0))


def test_a_drives_rate_is_over_the_windows_in_which_its_counters_could_be_read() -> None:
    windows = [
        window(0, {"operations": 100, "device_write_operations": 200, "0:1.write_operations": 200}),
        window(1, {"operations": 100}),
        window(2, {"operations": 100, "device_write_operations": 0, "0:1.write_operations": 0}),
    ]
    assert rate_of(windows, "operations") == 10.0
    assert rate_of(windows, "device_write_operations") == 10.0
    assert rate_of(windows, "0:1.write_operations") == 10.0
    assert rate_of(windows, "device_discarded_bytes", zero_with="device_write_operations") == 0.0
    assert rate_of(windows[1:2], "device_write_operations") is None


def test_scrapes_that_are_further_apart_than_windows_have_the_rate_of_their_span() -> None:
    minute = {"device_write_operations": 6000, "0:2.write_operations": 6000}
    windows = [
        window(seq, minute if seq % 6 == 0 else {}, {DRIVES_SPAN: 60.0} if seq % 6 == 0 else {}) for seq in range(9)
    ]
    assert rate_of(windows, "device_write_operations") == 100.0
    assert rate_of(windows, "0:2.write_operations") == 100.0
