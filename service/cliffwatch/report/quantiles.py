"""Report section on latencies of which only quantiles of each window are known, such as of Kafka's own metrics."""

from statistics import median

from cliffwatch.base.units import six_digits
from cliffwatch.journal import JournalWindow
from cliffwatch.journal.windows import quantiles_in
from cliffwatch.model.phase import Phase
from cliffwatch.report.collect import Collected
from cliffwatch.report.schema.report import QuantileOfWindows, WindowQuantiles


def quantiles_document(run: Collected) -> dict[str, WindowQuantiles]:
    """The section, by latency name, of the windows after the warm-up; empty where all latencies have histograms."""
    windows = [window for window in run.windows if window.phase != Phase.WARM_UP]
    names = sorted({name for window in windows for name, each in window.latency.items() if quantiles_in(each)})
    return {name: _of(name, windows) for name in names}


def _of(name: str, windows: list[JournalWindow]) -> WindowQuantiles:
    found = [known for window in windows if (known := quantiles_in(window.latency.get(name, {})))]
    columns: dict[str, list[float]] = {}
    for known in found:
        for quantile, seconds in known.items():
            columns.setdefault(quantile, []).append(seconds)
    body: dict[str, QuantileOfWindows] = {
        quantile: {"median_seconds": six_digits(median(column)), "highest_seconds": six_digits(max(column))}
        for quantile, column in columns.items()
    }
    return {"windows": len(found), "quantiles": body}  # type: ignore[typeddict-item]  # the journal has no other names
