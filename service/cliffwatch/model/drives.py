"""Drives of other hosts that a run watches through a Prometheus server, instead of the drives below its targets.

They are chosen by a selector of their series, such as `instance=~"broker-.*",device=~"nvme.*"`: label matchers as in
PromQL (https://prometheus.io/docs/prometheus/latest/querying/basics/), without braces.
"""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.model.document import Name, Strict

_SOURCE: Literal["prometheus"] = "prometheus"
SELECTOR_LIMIT = 1000
_MATCHER = re.compile(r'\s*[A-Za-z_][A-Za-z0-9_]*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"\s*')


def _matchers(selector: str) -> str:
    """Return the selector, stripped, if it is label matchers separated by commas. Raises ValueError."""
    position = 0
    while (match := _MATCHER.match(selector, position)) is not None:
        position = match.end()
        if position == len(selector):
            return selector.strip()
        if selector[position] != ",":
            break
        position += 1
    rest = selector[position:].strip()
    where = f"cannot be understood from {rest[:40]!r} on" if rest else "ends where a matcher is missing"
    raise ValueError(f'{where}; write label matchers such as instance=~"broker-.*",device=~"nvme.*"')


class PrometheusDrives(Strict):
    """Drives whose counters a Prometheus server has, chosen by the labels of their series (`selector`).

    `server` is a name of `CLIFFWATCH_PROMETHEUS_SERVERS`; without it, the service's own Prometheus is used.
    """

    source: Literal["prometheus"] = _SOURCE
    selector: Annotated[str, Field(max_length=SELECTOR_LIMIT), AfterValidator(_matchers)]
    server: Name | None = None

    def __str__(self) -> str:
        return f"{self.source}:{self.selector}"


def _from_text(value: object) -> object:
    if not isinstance(value, str):
        return value
    source, separator, selector = value.partition(":")
    if source != _SOURCE or not separator:
        raise ValueError(f"{value[:60]!r} is no source of drives; write prometheus:SELECTOR")
    return {"source": source, "selector": selector}


def parse_drives(text: str) -> PrometheusDrives:
    """Drives from `prometheus:SELECTOR`. Raises Problem(bad_request)."""
    try:
        return _DRIVES.validate_python(text)
    except ValidationError as error:
        raise Problem(Code.BAD_REQUEST, "the drives are not valid", faults_of(error, "drives")) from error


#: Drives as a document, or as the text that the command line takes.
Drives = Annotated[PrometheusDrives, BeforeValidator(_from_text)]
_DRIVES: TypeAdapter[PrometheusDrives] = TypeAdapter(Drives)
