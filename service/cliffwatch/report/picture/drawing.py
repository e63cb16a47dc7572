"""Draw report.png: the report in one picture, for a chat, a ticket or a slide.

It shows the same figures as the top of report.html: the verdict's sentence, the client's p99 beside the drive's
latency, throughput, and the likely cause. No browser is needed, and the same journal gives the same picture.
"""

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from cliffwatch.base.units import format_share
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.phase import phase_words
from cliffwatch.model.run_state import VerdictName
from cliffwatch.model.shown_drives import shown_drives
from cliffwatch.report import format as formats
from cliffwatch.report.build import Report
from cliffwatch.report.charts.series import ChartSeries, Column
from cliffwatch.report.picture.axes import even_bytes, log_ticks, widened
from cliffwatch.report.picture.text import Writing, plain
from cliffwatch.report.schema.report import ReportDocument

#: Size as shown in a chat; drawn with a third more dots, so that it is sharp there and on denser screens.
WIDTH_INCHES, HEIGHT_INCHES = 12.0, 6.75
DOTS_PER_INCH = 400 / 3

TEXT, QUIET, LINE, GRID = "#1a1f27", "#56606e", "#c9cfd8", "#e8ebef"
PHASE, GAP, MARK, ONSET, BASELINE = "#f2f4f8", "#b08a6a", "#6b4a00", "#b3261e", "#00694f"
STALL = "#f3cfcc"
P50, P99, DEVICE = "#0072b2", "#c85200", "#5b3f96"
TONES = {
    VerdictName.PASS: "#00694f",
    VerdictName.DEGRADED: "#8a5200",
    VerdictName.INVALID: "#5b3f96",
    VerdictName.FAILED: "#b3261e",
    VerdictName.STOPPED: "#4b5563",
}

#: Left edge and width that all charts share, as shares of the picture.
LEFT, WIDTH = 0.08, 0.88
#: A gap is never drawn narrower than this share of the time axis: it could not be seen.
_GAP_VISIBLE = 0.0015
_LABELS_LIMIT = 12
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400, 172800)
#: Chart series for the drives' latency, the best first: field, column and label.
_DEVICE = (("layers", "device_p99", "device p99"), ("layers", "device_mean", "device mean"))


def draw(report: Report) -> bytes:
    """Draw the picture of a report, as PNG."""
    with styled():
        output = io.BytesIO()
        composed(report).savefig(output, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    return output.getvalue()


def composed(report: Report) -> Figure:
    """Figure of the picture. Call this, and use the figure, only within `styled`."""
    figure = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES), dpi=DOTS_PER_INCH, facecolor="white")
    FigureCanvasAgg(figure)
    _Picture(figure, report.document, report.series).compose()
    return figure


@contextmanager
def styled() -> Iterator[None]:
    """Apply the matplotlib settings of the picture, regardless of the machine's own settings."""
    settings: Any = {
        "font.family": "DejaVu Sans",
        "font.size": 9,
        # A dollar sign in text from outside must not begin a formula.
        "text.parse_math": False,
        "axes.edgecolor": LINE,
        "axes.labelcolor": QUIET,
        "xtick.color": QUIET,
        "ytick.color": QUIET,
        "hatch.linewidth": 1.0,
        "hatch.color": GAP,
        "path.simplify_threshold": 0.2,
        "agg.path.chunksize": 20_000,
    }
    with mpl.rc_context(), warnings.catch_warnings():
        # A character that the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        mpl.rcdefaults()
        mpl.rcParams.update(settings)
        yield


class _Picture:
    def __init__(self, figure: Figure, document: ReportDocument, series: ChartSeries) -> None:
        self._figure = figure
        self._document = document
        self._series = series
        self._writing = Writing(figure)
        self._end = float(document.get("coverage", {}).get("asked_seconds", 0) or 0)
        self._primary = primary_latency(list(document["latency"]) or list(series.latency))

    def compose(self) -> None:
        below = self._head()
        if self._series.elapsed and self._end > 0:
            bottom = self._foot()
            height = below - 0.075 - bottom
            self._throughput([LEFT, bottom + 0.045, WIDTH, height * 0.26])
            self._latency([LEFT, bottom + 0.045 + height * 0.36, WIDTH, height * 0.60])
        else:
            self._foot()
            words = "No window was measured, so there is nothing to draw."
            self._figure.text(0.5, 0.45, words, ha="center", color=QUIET, fontsize=14)

    def _head(self) -> float:
        """Draw verdict, name and sentence. Returns the height at which they end, as a share of the picture's."""
        run, verdict = self._document["run"], VerdictName(self._document["verdict"]["name"])
        box = {"boxstyle": "round,pad=0.45,rounding_size=0.9", "facecolor": TONES[verdict], "edgecolor": "none"}
        badge = self._figure.text(
            0.034, 0.938, verdict, color="white", fontsize=13, weight="bold", va="center", bbox=box
        )
        begin = 0.034 + self._writing.width(badge) + 0.026
        end = 0.98 - self._about() - 0.02
        name = plain(run["workload"]["name"] if "workload" in run else run["id"])
        title = self._writing.fitted(name, end - begin, size=15, weight="bold")
        self._figure.text(begin, 0.938, title, color=TEXT, fontsize=15, weight="bold", va="center")
        top = 0.872
        said = f"{self._document['headline']} {self._document.get('course', '')}".rstrip()
        for words in self._writing.lines(plain(said), 0.955, size=12.5, limit=3):
            self._figure.text(0.022, top, words, color=TEXT, fontsize=12.5, va="center")
            top -= 0.042
        return top

    def _about(self) -> float:
        """Draw run id, target and drive in the corner. Returns their width, as a share of the picture's."""
        run = self._document["run"]
        place = [plain(run["target"])] if "target" in run else []
        drives = [finding["drive"] for finding in self._document["findings"] if "drive" in finding]
        named = shown_drives({"drives": drives[:1]} if drives else self._document["facts"])
        if named:
            place.append(f"drive {plain(named)}")
        lines = [self._writing.fitted(words, 0.40, size=9) for words in (plain(run["id"]), " · ".join(place))]
        for number, words in enumerate(lines):
            height = 0.952 - 0.029 * number
            self._figure.text(0.98, height, words, color=QUIET, fontsize=9, ha="right", va="center")
        return max(self._writing.extent(words, 9) for words in lines)

    def _foot(self) -> float:
        """Draw the likely cause with its evidence, and dates. Returns their height, as a share of the picture's."""
        run, coverage = self._document["run"], self._document.get("coverage", {})
        reported = []
        if "load_start" in run:
            reported.append(f"{formats.moment(run['load_start'])} – {formats.moment(run['load_asked_end'])}")
        if self._end > 0:
            measured, asked = formats.duration(coverage["measured_seconds"]), formats.duration(self._end)
            reported.append(f"{measured} of {asked} measured")
        self._figure.text(0.022, 0.028, " · ".join(reported), color=QUIET, fontsize=9, va="center")
        self._figure.text(0.98, 0.028, "Cliffwatch", color=QUIET, fontsize=9, weight="bold", ha="right", va="center")
        lines = self._writing.lines(plain(_cause_of(self._document)), 0.955, size=10.5, limit=2)
        for number, words in enumerate(reversed(lines)):
            self._figure.text(0.022, 0.068 + 0.034 * number, words, color=TEXT, fontsize=10.5, va="center")
        return 0.068 + 0.034 * len(lines) if lines else 0.05

    def _latency(self, place: list[float]) -> None:
        axes = self._chart(place)
        axes.set_yscale("log")
        lines: list[tuple[Column, str, str, float]] = []
        label = self._writing.fitted(plain(formats.label(self._primary or "")), 0.18, size=9)
        measures = self._series.latency.get(self._primary or "", {})
        if measures:
            lines += [(measures["p50"], f"{label} p50", P50, 0.9)]
        if (device := self._device()) is not None:
            lines.append((device[0], device[1], DEVICE, 1.1))
        if measures:
            lines.append((measures["p99"], f"{label} p99", P99, 1.4))
        for column, name, tone, width in lines:
            self._plot(axes, [value if value is None or value > 0 else None for value in column], name, tone, width)
        if any(self._series.outstanding):
            ages = [np.nan if age is None else float(age) for age in self._series.outstanding]
            axes.plot(self._series.elapsed, ages, ".", color=ONSET, markersize=3)
        self._baseline(axes)
        lowest, highest = widened(*axes.get_ylim())
        # Room for the names of phases and findings above the lines.
        highest *= (highest / lowest) ** 0.3
        axes.set_ylim(lowest, highest)
        axes.yaxis.set_major_locator(FixedLocator(log_ticks(lowest, highest)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: formats.latency(value / 1e6)))
        axes.tick_params(labelbottom=False)
        self._dress(axes, labelled=True)
        _legend(axes, 1.0)

    def _throughput(self, place: list[float]) -> None:
        axes = self._chart(place)
        rates = self._series.rates
        name = next((each for each in ("bytes", "operations") if each in rates), None)
        highest = 0.0
        for key, label, tone in ((name, "throughput", P50), ("device_bytes", "of the drives", DEVICE)):
            if key in rates and (key != "device_bytes" or name == "bytes"):
                self._plot(axes, rates[key], label, tone, 1.1)
                highest = max([highest, *(value for value in rates[key] if value is not None)])
        axes.set_ylim(0, highest * 1.15 or 1)
        axes.yaxis.set_major_locator(even_bytes(highest) if name == "bytes" else MaxNLocator(3))
        show = formats.byte_rate if name == "bytes" else formats.rate
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: show(value)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: formats.elapsed(value)))
        self._dress(axes, labelled=False)
        _legend(axes, 0.96)

    def _chart(self, place: list[float]) -> Axes:
        axes = self._figure.add_axes((place[0], place[1], place[2], place[3]))
        axes.set_xlim(0, self._end)
        step = next((step for step in _STEPS if self._end / step <= 12), self._end / 12)
        axes.xaxis.set_major_locator(FixedLocator(list(np.arange(0, self._end + 1e-6, step))))
        axes.grid(visible=True, color=GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.tick_params(length=3, labelsize=9)
        return axes

    def _device(self) -> tuple[Column, str] | None:
        for _, name, label in _DEVICE:
            if name in self._series.layers:
                return self._series.layers[name], label
        column = self._series.evidence.get("device_write_latency")
        return (column, "write latency of the drive, mean") if column is not None else None

    def _plot(self, axes: Axes, column: Sequence[float | None], label: str, tone: str, width: float) -> None:
        """Plot a curve with breaks at gaps; a window between two gaps is a point."""
        values = np.array([np.nan if value is None else value for value in column], dtype=np.float64)
        times = np.array(self._series.elapsed, dtype=np.float64)
        axes.plot(times, values, color=tone, linewidth=width, label=label, solid_joinstyle="round")
        known = np.concatenate([[False], ~np.isnan(values), [False]])
        alone = known[1:-1] & ~known[:-2] & ~known[2:]
        axes.plot(times[alone], values[alone], ".", color=tone, markersize=3)

    def _baseline(self, axes: Axes) -> None:
        """Draw the baseline band (nine of ten of its windows) of the findings on the primary latency."""
        found = [
            (finding["baseline"], *finding["baseline_band"])
            for finding in self._series.findings
            if finding.get("latency") == self._primary and finding.get("baseline_band")
        ]
        for _, low, high in sorted(set(found))[:3]:
            axes.axhspan(low, high, color=BASELINE, alpha=0.22, linewidth=0, zorder=1.5)
        if found:
            words = f"baseline {formats.latency(min(found)[0] / 1e6)}"
            axes.plot([], [], color=BASELINE, alpha=0.35, linewidth=6, label=words)

    def _dress(self, axes: Axes, labelled: bool) -> None:
        """Draw phases, stalls, gaps and findings on a chart, with their names if `labelled`."""
        across = axes.get_xaxis_transform()
        for index, phase in enumerate(self._document["phases"]):
            start, end = max(0.0, phase["start_seconds"]), min(self._end, phase["end_seconds"])
            if end > start and index % 2 == 0:
                axes.axvspan(start, end, color=PHASE, linewidth=0, zorder=0)
            if end > start and labelled:
                words = plain(phase_words(phase["name"]))
                if self._writing.extent(words, 8.5) < (end - start) / self._end * WIDTH:
                    axes.text(
                        start + 0.003 * self._end, 0.965, words, transform=across, color=QUIET, fontsize=8.5, va="top"
                    )
        self._stalls(axes, across, labelled)
        self._gaps(axes, across, labelled)
        free = -1.0
        for number, finding in enumerate(self._series.findings[:100]):
            tone = ONSET if finding["degrades"] else MARK
            axes.axvline(finding["at"], color=tone, linewidth=1.6, zorder=4)
            words = f"{finding['kind']} {formats.elapsed(finding['at'])}"
            width = (self._writing.extent(words, 9) / WIDTH + 0.014) * self._end
            begin = min(finding["at"], self._end - width)
            if labelled and begin > free and number < _LABELS_LIMIT:
                free = begin + width
                box = {"boxstyle": "square,pad=0.25", "facecolor": tone, "edgecolor": "none"}
                place = (begin + 0.005 * self._end, 0.865)
                axes.text(
                    *place,
                    words,
                    transform=across,
                    color="white",
                    fontsize=9,
                    weight="bold",
                    va="center",
                    bbox=box,
                    zorder=6,
                )

    def _stalls(self, axes: Axes, across: Any, labelled: bool) -> None:
        """Draw stalls as bands. `_latency` draws the age of the oldest operation in them as dots."""
        spans = [(start, max(end - start, _GAP_VISIBLE * self._end)) for start, end, _ in self._series.stalls]
        if not spans:
            return
        axes.broken_barh(spans, (0, 1), transform=across, zorder=1, facecolor=STALL, linewidth=0)
        if labelled:
            known = any(age is not None for _, _, age in self._series.stalls)
            words = "stalled: nothing completed" if known else "nothing completed"
            axes.plot([], [], color=STALL, linewidth=6, label=words)

    def _gaps(self, axes: Axes, across: Any, labelled: bool) -> None:
        gaps = [
            (gap["start_seconds"], gap["end_seconds"]) for gap in self._document.get("coverage", {}).get("gaps", ())
        ]
        spans = [(start, max(end - start, _GAP_VISIBLE * self._end)) for start, end in gaps]
        if not spans:
            return
        style: dict[str, Any] = {"facecolor": "#fbf3ea", "edgecolor": GAP, "hatch": "////", "linewidth": 0}
        axes.broken_barh(spans, (0, 1), transform=across, zorder=1, **style)
        for start, length in spans if labelled else ():
            if self._writing.extent("not measured", 8.5) < length / self._end * WIDTH:
                box = {"boxstyle": "square,pad=0.2", "facecolor": "white", "edgecolor": "none"}
                words: dict[str, Any] = {
                    "color": MARK,
                    "fontsize": 8.5,
                    "ha": "center",
                    "va": "center",
                    "bbox": box,
                    "zorder": 5,
                }
                axes.text(start + length / 2, 0.5, "not measured", transform=across, **words)


def _legend(axes: Axes, bottom: float) -> None:
    lines, names = axes.get_legend_handles_labels()
    if lines:
        place = (-0.005, bottom)
        axes.legend(
            lines,
            names,
            loc="lower left",
            bbox_to_anchor=place,
            ncols=4,
            frameon=False,
            borderpad=0.1,
            labelcolor=TEXT,
        )


def _cause_of(document: ReportDocument) -> str:
    """Text: likely cause of the first degrading finding, its evidence beyond the headline, and the runner-up."""
    findings = sorted(document["findings"], key=lambda finding: not finding["degrades"])
    finding = next((finding for finding in findings if "cause" in finding), None)
    if finding is None:
        return ""
    cause, headline = finding["cause"], document["headline"].casefold()
    sure = f" ({format_share(round(cause['confidence'], 2))} sure)" if cause.get("confidence") else ""
    sentences = [sentence.rstrip(".") for sentence in cause.get("evidence_for", ())]
    evidence = [sentence for sentence in sentences if sentence.casefold() not in headline][:2]
    reported = f"Likely cause: {cause['title']}{sure}" + "".join(
        f"; {sentence[:1].lower()}{sentence[1:]}" for sentence in evidence
    )
    runner_up = finding.get("runner_up")
    return reported + "." + (f" Next: {runner_up['title']}." if runner_up else "")
