"""Expectations of a drill and whether each holds: pure functions of what was observed."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from cliffwatch.base.units import format_amplification, format_ratio
from cliffwatch.cli.drill.progress import AMPLIFICATION_SECONDS, AMPLIFICATION_SPAN, WindowFigures
from cliffwatch.cli.output import ABSENT, show_latency
from cliffwatch.model.drill import VariantName
from cliffwatch.model.phase import JUDGED_PHASES
from cliffwatch.model.run_state import VerdictName

CLIFF_ALERT = "CliffwatchLatencyCliff"
GARBAGE_COLLECTION = "drive_garbage_collection"
#: Thresholds that the drive without mitigation must reach, and that drives with mitigation must stay below.
AMPLIFICATION_AT_CLIFF = 2.0
AMPLIFICATION_HEALTHY = 1.5
LATENCY_RATIO_AT_CLIFF = 5.0


@dataclass(frozen=True, slots=True)
class Variant:
    """How the drive is mounted and partitioned, and whether a latency cliff is expected."""

    name: VariantName
    story: str
    discard: bool = False
    unpartitioned: float = 0.0
    has_cliff: bool = False


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant(
            VariantName.AGING,
            "a drive without spare space and without TRIM: a latency cliff is expected",
            has_cliff=True,
        ),
        Variant(
            VariantName.TRIM,
            "the same drive with TRIM (mount option discard): no cliff is expected",
            discard=True,
        ),
        Variant(
            VariantName.OVER_PROVISIONED,
            "the same drive with 25 % of its space left unpartitioned: no cliff is expected",
            unpartitioned=0.25,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Observed:
    """Observations of a drill: run and report as the API shows them, the drive's kernel name, windows, write
    amplification."""

    run: dict[str, Any]
    report: dict[str, Any]
    device: str
    windows: Sequence[WindowFigures]
    amplifications: Sequence[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expectation: `what` was expected, whether it `holds`, and in `detail` what was observed."""

    what: str
    holds: bool
    detail: str


def expectations(variant: Variant, observed: Observed) -> list[Expectation]:
    """All expectations of the variant, compared with what was observed."""
    return _of_the_cliff(observed) if variant.has_cliff else _of_health(observed)


def _of_the_cliff(observed: Observed) -> list[Expectation]:
    found = _cliffs(observed)
    drives = [str((finding.get("drive") or {}).get("name")) for finding in found]
    causes = [(finding.get("cause") or {}) for finding in found]
    verdict = observed.run.get("verdict")
    highest = max((value for _, value in observed.amplifications), default=None)
    ratio, rise = _rise(observed, "worst")
    received = _cliff_alerts(observed)
    return [
        Expectation(
            f"write amplification rose above {AMPLIFICATION_AT_CLIFF:g}",
            highest is not None and highest > AMPLIFICATION_AT_CLIFF,
            ABSENT if highest is None else f"up to {format_amplification(highest)} in {AMPLIFICATION_SECONDS:g} s",
        ),
        Expectation(
            f"latency rose at least {format_ratio(LATENCY_RATIO_AT_CLIFF)}",
            ratio is not None and ratio >= LATENCY_RATIO_AT_CLIFF,
            rise,
        ),
        Expectation("the verdict is degraded", verdict == VerdictName.DEGRADED, str(verdict)),
        Expectation("the report has a cliff", bool(found), _sentences(found)),
        Expectation(f"it names the drive {observed.device}", observed.device in drives, _listed(drives)),
        Expectation(
            "it names garbage collection as the likely cause",
            any(cause.get("name") == GARBAGE_COLLECTION for cause in causes),
            _listed([str(cause.get("title")) for cause in causes]),
        ),
        Expectation(f"the alert {CLIFF_ALERT} arrived", bool(received), _listed(received)),
    ]


def _of_health(observed: Observed) -> list[Expectation]:
    """Expectations of a drive with TRIM or spare space: its garbage collection did not slow the load down.

    A verdict that another cause has degraded, such as a busy machine, is accepted: latency must only have risen by less
    than LATENCY_RATIO_AT_CLIFF, and no finding may name garbage collection as its cause.
    """
    findings = observed.report.get("findings", [])
    verdict = observed.run.get("verdict")
    last = observed.amplifications[-1][1] if observed.amplifications else None
    ratio, rise = _rise(observed)
    is_the_drive = any((finding.get("cause") or {}).get("name") == GARBAGE_COLLECTION for finding in findings)
    received = _cliff_alerts(observed)
    return [
        Expectation(
            f"write amplification stayed below {AMPLIFICATION_HEALTHY:g}",
            last is not None and last < AMPLIFICATION_HEALTHY,
            ABSENT if last is None else f"{format_amplification(last)} in the {AMPLIFICATION_SPAN}",
        ),
        Expectation(
            f"latency rose less than {format_ratio(LATENCY_RATIO_AT_CLIFF)}",
            ratio is not None and ratio < LATENCY_RATIO_AT_CLIFF,
            rise,
        ),
        Expectation(
            "the verdict is pass, or degraded by something else than garbage collection",
            verdict in (VerdictName.PASS, VerdictName.DEGRADED) and not is_the_drive,
            f"{verdict}, findings: {_sentences([finding for finding in findings if finding['degrades']])}",
        ),
        Expectation(f"no alert {CLIFF_ALERT} arrived", bool(observed.report) and not received, _listed(received)),
    ]


def _cliffs(observed: Observed) -> list[dict[str, Any]]:
    return [finding for finding in observed.report.get("findings", []) if finding["kind"] == "cliff"]


def _rise(observed: Observed, which: str = "level") -> tuple[float | None, str]:
    """Ratio by which p99 rose, and a text with p99 before and after: of the report's largest cliff, so that the drill
    agrees with the report (`which`: its level, or its worst), or of the windows if the report has no cliff."""
    levels = [(float(cliff["baseline"]), float(cliff.get(which, cliff["level"]))) for cliff in _cliffs(observed)]
    before, after = max(levels, key=_ratio_of) if levels else _latency(observed.windows)
    ratio = _ratio_of((before, after)) if before and after else None
    at_worst = " at worst" if levels and which == "worst" else ""
    return ratio, f"p99 from {show_latency(before)} to {show_latency(after)}{at_worst}"


def _ratio_of(levels: tuple[float, float]) -> float:
    before, after = levels
    return after / before


def _latency(windows: Sequence[WindowFigures]) -> tuple[float | None, float | None]:
    """Median p99 (s) of the first and of the last third of the windows in baseline and soak; None for under three."""
    judged = [window.p99_seconds for window in windows if window.phase in JUDGED_PHASES]
    measured = [value for value in judged if value is not None]
    third = len(measured) // 3
    return (median(measured[:third]), median(measured[-third:])) if third else (None, None)


def _cliff_alerts(observed: Observed) -> list[str]:
    alerts = observed.report.get("alerts", [])
    return [f"{alert['received']}: {alert['description']}" for alert in alerts if alert["name"] == CLIFF_ALERT]


def _sentences(findings: Sequence[dict[str, Any]]) -> str:
    return _listed([str(finding["sentence"]) for finding in findings])


def _listed(texts: Sequence[str]) -> str:
    return "; ".join(texts) or "none"
