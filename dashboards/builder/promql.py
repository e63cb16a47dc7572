"""PromQL expressions that more than one dashboard uses."""

from collections.abc import Iterator

from dashboards.builder.colors import CLIENT_QUANTILES, FINDINGS, PHASES, STATE_COLORS, VERDICT_COLORS
from dashboards.builder.parts import Query

#: Label selectors of the run, and of the drives below it.
RUN = 'run_id="$run"'
DRIVE = 'instance=~"$instance", device=~"$device"'
#: Label selector of what the run's worker says of those drives; the label is empty for drives of its own host.
OF_DRIVE = f'{RUN}, device=~"$device", device_instance=~"|$instance"'
#: Label selector of the phases in which a run's windows are written.
UNDER_LOAD = 'phase=~"warm_up|baseline|soak"'
#: Prefix of the metrics of the drive exporter, and of aging drives.
DRIVE_EXPORTER = "cliffwatch_drive"
#: Prefix of the block-layer probe's metrics.
BLOCK = "ebpf_exporter_cliffwatch_block"
#: Kinds of findings about work that was not done, whose series is `cliffwatch_undone_seconds`.
_OF_WORK = ("shortfall", "stall")
QUANTILES = dict(zip(CLIENT_QUANTILES, (0.5, 0.9, 0.99, 0.999, 0.9999), strict=True))
#: How long the stack's Prometheus keeps what it scraped.
RETENTION = "15d"


def drives_of_run(*selectors: str) -> str:
    """The drives that the run watches, also when it is over, each with the `instance` of its exporters: the host of its
    worker, or, of a drive of another host, what its series say."""
    info = f"last_over_time(cliffwatch_device_info{{{', '.join((RUN, *selectors))}}}[{RETENTION}])"
    for label in ("host", "device_instance"):
        info = f'label_replace({info}, "instance", "$1", "{label}", "(.+)")'
    return info


def rate(counter: str, selector: str, by: str = "", shift: str = "") -> str:
    """Increase of a counter per second, summed over all series, or over those that agree in the labels `by`."""
    return f"sum{f' by ({by})' if by else ''} (rate({counter}{{{selector}}}[$__rate_interval]{shift}))"


def quantile(quantile: float, histogram: str, selector: str, by: str, shift: str = "") -> str:
    """Quantile of a histogram, merged over the series that agree in the labels `by`."""
    return f"histogram_quantile({quantile}, {rate(f'{histogram}_bucket', selector, f'le, {by}', shift)})"


def per(amount: str, count: str, selector: str, by: str) -> str:
    """Mean amount per count; no value while nothing is counted."""
    return f"{rate(amount, selector, by)} / ({rate(count, selector, by)} > 0)"


def worst(gauge: str, shift: str = "") -> str:
    """Largest value in the interval of each point of a graph, so that zooming out hides no window; the newest value
    where that interval is shorter than the time between two scrapes."""
    return f"(max_over_time({gauge}[$__interval]{shift}) or {gauge}{shift})"


def shares(histogram: str, selector: str) -> str:
    """Buckets of a histogram as shares of all that was counted in the same time, for a heat map: those between the
    least and the greatest value of the time that is shown, since a heat map draws a row for every bucket."""
    buckets = f"sum by (le) (increase({histogram}_bucket{{{selector}}}[$__rate_interval]))"
    counted = f"sum(increase({histogram}_count{{{selector}}}[$__rate_interval]))"
    return f"{buckets} / on () group_left () ({counted} > 0) and on (le) ({_filled(f'{histogram}_bucket', selector)})"


def _filled(buckets: str, selector: str) -> str:
    """The buckets from the first to the last that counted anything in the time that is shown.

    Which is the last one, counts cannot say: all above it are equal. The upper bound of the bucket of the greatest
    value is its quantile 1; bounds, which are labels, become numbers as quantiles of histograms of one bucket each.
    Beyond the last bound that quantile is the last bound, and the bucket without a bound counts more than that one.
    """
    shown, finite, beyond = (
        f"sum by (le) (increase({buckets}{{{selector}{more}}}[$__range] @ end()))"
        for more in ("", ', le!="+Inf"', ', le="+Inf"')
    )
    bound = f'label_replace({shown} * 0 + 1, "bound", "$1", "le", "(.*)")'
    whole = f'label_replace({bound}, "le", "+Inf", "", "")'
    bounds = f'label_replace(histogram_quantile(1, {bound} or {whole}), "le", "$1", "bound", "(.*)")'
    greatest = f"histogram_quantile(1, {shown})"
    return (
        f"{shown} > 0 and on (le) ({bounds} <= on () group_left () {greatest})"
        f" or {beyond} > on () group_left () max({finite})"
    )


def at_start(series: str, start: str) -> str:
    """Value of a metric at the start of a run's load or, if its exporter came up only then, the lowest value in the
    minute after that. `start` is in seconds since the epoch."""
    return f"(max({series} @ {start}) or max(min_over_time({series}[1m] @ {start} offset -1m)))"


def phase_number(selector: str, shift: str = "") -> str:
    """The number that colors.PHASES gives to the phase that a run is in; one series per run."""
    others = f"{selector}, " if selector else ""
    each = (
        f'max by (run_id) ((cliffwatch_run_phase{{{others}phase="{name}"}}{shift} == 1) * {number})'
        for name, (number, _) in PHASES.items()
    )
    return " or ".join(each)


def outcome_number(selector: str) -> str:
    """The number that OUTCOMES gives to a run's verdict, or to its state while it has none."""
    named = [("verdict", name) for name in VERDICT_COLORS] + [("state", name) for name in STATE_COLORS]
    each = (
        f'max by (run_id) (cliffwatch_service_run_info{{{selector}, {label}="{name}"}}) * {number}'
        for number, (label, name) in enumerate(named, 1)
    )
    return " or ".join(each)


#: Name and colour of each number of `outcome_number`.
OUTCOMES = dict(enumerate((VERDICT_COLORS | STATE_COLORS).items(), 1))


def finding_number(selector: str) -> str:
    """The number that FINDINGS gives to the worst finding that lasts; 0 where detection runs and none lasts."""
    each = [
        f'max(cliffwatch_finding_active{{{selector}, kind="{name}"}}) * {number}'
        for name, (number, _) in FINDINGS.items()
        if name not in ("none", *_OF_WORK)
    ]
    each += [
        f'max(cliffwatch_undone_seconds{{{selector}, kind="{name}"}} > bool 0) * {FINDINGS[name][0]}'
        for name in _OF_WORK
    ]
    numbered = (f'label_replace({one}, "n", "{place}", "", "")' for place, one in enumerate(each))
    return f"max({' or '.join(numbered)})"


def window_latency(selector: str) -> Iterator[Query]:
    """Queries for each latency percentile of the newest windows."""
    for name, value in QUANTILES.items():
        gauge = f'cliffwatch_window_latency_seconds{{{selector}, quantile="{value}"}}'
        yield Query(f"max({worst(gauge)})", name, color=CLIENT_QUANTILES[name], width=2 if name == "p99" else None)


def latencies(histogram: str, selector: str, by: str, legend: str) -> Iterator[Query]:
    """Queries for p50, p99 and p99.9 of a histogram by the labels `by`; `legend` precedes the percentile's name. They
    have no colour of their own, since there is a line for each value of the labels."""
    for name in ("p50", "p99", "p99.9"):
        line = 2 if name == "p99" else None
        yield Query(quantile(QUANTILES[name], histogram, selector, by), f"{legend} {name}", width=line)
