"""Chart columns that support a cause, by window: drives' write latency, write amplification, free blocks."""

from collections.abc import Sequence

import numpy as np

from cliffwatch.journal import JournalWindow
from cliffwatch.model.drive_id import mean_request_seconds
from cliffwatch.report.charts.layers import SLACK_SECONDS
from cliffwatch.telemetry.catalogue import FREE_BLOCKS, HOST_WRITTEN, MEDIA_WRITTEN
from cliffwatch.telemetry.increases import sum_of_increases
from cliffwatch.telemetry.reader import Floats, Samples, Telemetry

Rows = Sequence[JournalWindow | None]


def evidence_columns(rows: Rows, telemetry: Telemetry | None) -> dict[str, Floats]:
    """Columns with a value per row: `device_write_latency` (mean seconds of a write), `write_amplification` (all drives
    together), `clean_blocks` (share, lowest of all drives). NaN where not known; a column without a value is absent."""
    columns = {"device_write_latency": _write_latency(rows)}
    if telemetry is not None:
        columns["write_amplification"] = _amplification(rows, telemetry)
        columns["clean_blocks"] = _clean_blocks(rows, telemetry.of(FREE_BLOCKS))
    return {name: column for name, column in columns.items() if not np.isnan(column).all()}


def _write_latency(rows: Rows) -> Floats:
    found = [None if row is None else mean_request_seconds(row.counters) for row in rows]
    return np.array([np.nan if each is None else each for each in found])


def _amplification(rows: Rows, telemetry: Telemetry) -> Floats:
    column = np.full(len(rows), np.nan)
    known = np.array([row is not None for row in rows])
    if not known.any():
        return column
    starts, ends = (np.array([getattr(row, bound) for row in rows if row is not None]) for bound in ("start", "end"))
    longest = float(np.max(ends - starts)) + max(SLACK_SECONDS, 2 * telemetry.step_seconds)
    media, _ = sum_of_increases(telemetry.of(MEDIA_WRITTEN), starts, ends, longest)
    host, _ = sum_of_increases(telemetry.of(HOST_WRITTEN), starts, ends, longest)
    with np.errstate(divide="ignore", invalid="ignore"):
        column[known] = np.where(host > 0, media / host, np.nan)
    return column


def _clean_blocks(rows: Rows, found: Sequence[Samples]) -> Floats:
    """Share of clean blocks: the last sample within each window, the lowest of all drives."""
    column = np.full(len(rows), np.nan)
    for samples in found:
        for index, row in enumerate(rows):
            if row is None:
                continue
            place = int(np.searchsorted(samples.times, row.end + 1e-6)) - 1
            if place >= 0 and samples.times[place] > row.start:
                column[index] = np.fmin(column[index], samples.values[place])
    return column
