"""Render report.html: the report document as one self-contained page.

All input from outside (workload, facts, events) reaches the page through Jinja's autoescaping, or as JSON whose
markup characters are escaped. The page's Content Security Policy allows only the two scripts that are written into it.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from cliffwatch.analysis.verdict import percent
from cliffwatch.base.units import format_number, format_ratio
from cliffwatch.journal.event_text import gap_words
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.part_names import split_part
from cliffwatch.model.phase import phase_words
from cliffwatch.model.run_state import VerdictName
from cliffwatch.model.series_name import series_words
from cliffwatch.model.shown_drives import drive_names, shown_drives
from cliffwatch.report import format as formats
from cliffwatch.report.charts import part_spread, percentile_curve
from cliffwatch.report.charts.heat import HeatMap, drawn
from cliffwatch.report.charts.series import ChartSeries, as_data
from cliffwatch.report.charts.small_curve import curve_of_load, curves_of_parts
from cliffwatch.report.limits.results import times_more
from cliffwatch.report.parts_document import CURVES_LIMIT
from cliffwatch.report.remedies import remedy_of
from cliffwatch.report.schema.latency import LatencyOfOperation
from cliffwatch.report.schema.report import ReportDocument

_TEMPLATES = Path(__file__).parent / "templates"
#: Style sheet that the report and the service's pages share.
THEME = _TEMPLATES / "theme.css"
_REPORT_STYLE = _TEMPLATES / "report.css"
#: Heading of a section: its id and its text, which holds no markup.
_HEADING = re.compile(r'<h2 id="([a-z-]+)">([^<]+)</h2>')
#: format.js writes numbers as the service's pages do.
_REPORT_SCRIPTS = (
    Path(__file__).parents[1] / "web" / "static" / "format.js",
    _TEMPLATES / "report-paint.js",
    _TEMPLATES / "report.js",
)
#: Where `make assets` puts the chart library.
CHART_LIBRARY = Path(__file__).parents[1] / "web" / "assets" / "node_modules" / "uplot"
#: Rows of a table beyond which the page points to report.json.
ROW_LIMIT = 400

#: Symbol and meaning of each verdict; the symbol is for readers who cannot distinguish its colour.
VERDICTS: dict[str, tuple[str, str]] = {
    VerdictName.PASS: (
        "✓",
        "Valid run; no errors, no degradation.",
    ),
    VerdictName.DEGRADED: ("▲", "Valid run; target degraded."),
    VerdictName.INVALID: ("?", "The measurement is not valid; it says nothing about the target."),
    VerdictName.FAILED: ("✕", "The load did not start, or could not go on."),
    VerdictName.STOPPED: ("■", "A user stopped the load early."),
}


@dataclass(frozen=True, slots=True)
class ChartLibrary:
    """uPlot as it is written into the page, with its licence, which every copy has to include."""

    script: str
    style: str
    licence: str


def chart_library(directory: Path = CHART_LIBRARY) -> ChartLibrary | None:
    """Read uPlot from where `make assets` puts it; None when it is not there."""
    try:
        return ChartLibrary(
            script=(directory / "dist" / "uPlot.iife.min.js").read_text(encoding="utf-8"),
            style=(directory / "dist" / "uPlot.min.css").read_text(encoding="utf-8"),
            licence=(directory / "LICENSE").read_text(encoding="utf-8"),
        )
    except FileNotFoundError:
        return None


def render(document: ReportDocument, series: ChartSeries, library_directory: Path = CHART_LIBRARY) -> str:
    """Page of a report document and its series. Without the chart library it has tables and says so."""
    library = chart_library(library_directory)
    script = "".join(path.read_text(encoding="utf-8") for path in _REPORT_SCRIPTS)
    scripts = [script] if library is None else [library.script, script]
    mark, meaning = VERDICTS[document["verdict"]["name"]]
    parts = document.get("parts", [])
    part_curves, part_scale = curves_of_parts(parts)
    load_curve, load_scale = curve_of_load(document)
    page = (
        _report_environment(drive_names(document["facts"]))
        .get_template("report.html")
        .render(
            document=document,
            library=library,
            load_curve=load_curve,
            load_scale=load_scale,
            heat=heat_svg(series, series.heat, "requests"),
            spread=heat_svg(series, series.spread, "operations"),
            parts=(parts[:CURVES_LIMIT], parts[CURVES_LIMIT:]),
            latencies=by_part(document["latency"]),
            part_curves=part_curves,
            part_scale=part_scale,
            part_spread=part_spread.drawn(parts) if len(parts) > CURVES_LIMIT else None,
            part_words=part_spread.spread_words(parts),
            curves={name: (list(curves), percentile_curve.drawn(curves)) for name, curves in series.curves.items()},
            mark=mark,
            meaning=meaning,
            remedy=remedy_of(
                VerdictName(document["verdict"]["name"]), document["verdict"]["reasons"], document["run"]["id"]
            ),
            primary=primary_latency(list(document["latency"])),
            row_limit=ROW_LIMIT,
            data=json_for_script(as_data(series, document)),
            policy=" ".join(f"'{_digest(content)}'" for content in scripts),
            script=Markup(script),  # noqa: S704 - our own file
            style=Markup("".join(path.read_text(encoding="utf-8") for path in (THEME, _REPORT_STYLE))),  # noqa: S704
        )
    )
    # A lone surrogate, which JSON can carry and UTF-8 cannot, is replaced, so that it does not prevent the report.
    return page.encode("utf-8", "replace").decode("utf-8")


def by_part(latency: Mapping[str, LatencyOfOperation]) -> tuple[dict[str, LatencyOfOperation], ...]:
    """Latencies of the run as a whole, and those of its parts."""
    return tuple({name: each for name, each in latency.items() if bool(split_part(name)[0]) == own} for own in (0, 1))


def heat_svg(series: ChartSeries, heat: HeatMap | None, what: str) -> Markup | None:
    onsets = [finding["at"] for finding in series.findings if finding["degrades"]]
    return drawn(heat, onsets[:100], what) if heat is not None else None


def headings(sections: Markup) -> list[tuple[str, Markup]]:
    """Id and title of each section's heading, in their order, for links that lead to them."""
    return [(found[1], Markup(found[2])) for found in _HEADING.finditer(sections)]  # noqa: S704 - of our own template


def json_for_script(content: Any) -> Markup:
    """Compact JSON that is safe between script tags: nothing in it can end the element or begin a comment."""
    text = json.dumps(content, separators=(",", ":"))
    return Markup(  # noqa: S704 - the characters that HTML could take for markup are escaped here
        text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    )


def environment(templates: Path) -> Environment:
    """Jinja environment of all pages: autoescaping, errors for undefined names, and filters that format quantities."""
    made = Environment(
        loader=FileSystemLoader(templates),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "latency": formats.latency,
        "duration": formats.duration,
        "ratio": format_ratio,
        "elapsed": formats.elapsed,
        "count": formats.count,
        "size": formats.size,
        "rate": formats.rate,
        "byte_rate": formats.byte_rate,
        "moment": formats.moment,
        "number": format_number,
        "label": formats.label,
        "gap_words": gap_words,
        "event_words": formats.event_words,
        "percent": percent,
        "phase_words": phase_words,
        "marked": formats.marked,
    }
    return made


def _report_environment(names: Mapping[str, str]) -> Environment:
    """Environment of a report; `names` are those of its drives."""
    made = environment(_TEMPLATES)
    made.filters["trusted"] = Markup
    made.filters["headings"] = headings
    made.filters["drives"] = shown_drives
    made.filters["series_words"] = partial(series_words, device_names=names)
    made.filters["times_more"] = times_more
    made.globals["plain_value"] = formats.value
    return made


def _digest(script: str) -> str:
    """Hash by which a Content Security Policy allows a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
