"""HTML page of a what-if answer: one file without scripts, readable in light and dark."""

from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cliffwatch.base.durable import output_file
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.units import format_amplification
from cliffwatch.labs.what_if.answer import Row, WhatIfAnswer
from cliffwatch.labs.what_if.text import AS_DESCRIBED, end_of_axis, hours_or_none, notes, question, reading

_HOUR = 3600.0
#: Share of the axis up to the end of the run, in percent; a mark beyond it means no cliff.
_RUN_PERCENT = 90.0
_NONE_PERCENT = 97.0
_TICKS_AT_MOST = 7
_STEPS = (1, 2, 3, 6, 12, 24, 48, 96, 168, 336, 672)


def write_page(answer: WhatIfAnswer, path: Path) -> None:
    """Write the page, whole or not at all. Raises Problem(bad_request) where it cannot be written."""
    content = page(answer).encode()
    try:
        with output_file(path) as file:
            file.write(content)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}; name another file"
        raise Problem(Code.BAD_REQUEST, "the page was not written", [FieldFault("--output", message)]) from error


def page(answer: WhatIfAnswer) -> str:
    """The page's HTML."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    has_onset = answer.base.onset_seconds is not None
    return templates.get_template("page.html").render(
        question=question(answer.plan),
        reading=reading(answer),
        has_onset=has_onset,
        axis_title="hours to the cliff" if has_onset else "write amplification",
        ticks=list(_ticks(answer)),
        rows=list(_rows(answer)),
        notes=list(notes(answer)),
    )


def _rows(answer: WhatIfAnswer) -> Iterator[dict[str, Any]]:
    end = end_of_axis(answer)
    before = None
    for row in answer.rows:
        parameter, value = row.case.parameter, row.case.value
        title = parameter.title if parameter is not None and parameter is not before else None
        before = parameter
        band = row.onset_seconds or row.write_amplification
        yield {
            "title": title,
            "name": parameter.show(value) if parameter is not None and value is not None else AS_DESCRIBED,
            "described": parameter is not None and row.case.is_as_described and not parameter.is_unknown,
            "lowest": _percent(answer, band.lowest, end),
            "middle": _percent(answer, band.middle, end),
            "highest": _percent(answer, band.highest, end),
            "all": sorted({_percent(answer, figure, end) for figure in _figures(answer, row)}),
            "cells": list(_cells(row)),
        }


def _figures(answer: WhatIfAnswer, row: Row) -> Iterator[float]:
    for simulation in row.case.simulations:
        found = answer.found[simulation]
        if row.onset_seconds is None:
            yield found.write_amplification
        else:
            yield inf if found.onset_seconds is None else found.onset_seconds


def _cells(row: Row) -> Iterator[str]:
    if row.onset_seconds is not None:
        for figure in (row.onset_seconds.lowest, row.onset_seconds.middle, row.onset_seconds.highest):
            yield hours_or_none(figure)
        yield f"{row.with_cliff} of {row.simulations}"
    amplification = row.write_amplification
    yield " … ".join(map(format_amplification, (amplification.lowest, amplification.middle, amplification.highest)))


def _percent(answer: WhatIfAnswer, figure: float, end: float) -> float:
    """Position of a figure on the axis, in percent."""
    if figure == inf:
        return _NONE_PERCENT
    lowest = 0.0 if answer.base.onset_seconds is not None else 1.0
    share = (figure - lowest) / (end - lowest) if end > lowest else 0.0
    return round(min(max(share, 0.0), 1.0) * _RUN_PERCENT, 2)


def _ticks(answer: WhatIfAnswer) -> Iterator[dict[str, Any]]:
    end = end_of_axis(answer)
    if answer.base.onset_seconds is None:
        for figure in (1.0, (1 + end) / 2, end):
            yield {"x": _percent(answer, figure, end), "text": format_amplification(figure), "anchor": "middle"}
        return
    hours = end / _HOUR
    step = next((step for step in _STEPS if hours / step <= _TICKS_AT_MOST), hours)
    for number in range(int(hours / step) + 1):
        text = f"{number * step:g} h"
        anchor = "start" if number == 0 else "middle"
        yield {"x": _percent(answer, number * step * _HOUR, end), "text": text, "anchor": anchor}
    yield {"x": _NONE_PERCENT, "text": "none", "anchor": "middle"}
