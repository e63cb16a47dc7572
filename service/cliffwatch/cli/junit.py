"""Result of a run as a JUnit XML file, which CI servers show: the verdict and each limit is a test case."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any
from xml.etree import ElementTree as ET

import typer

from cliffwatch.analysis.comparison import Outcome
from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.client import ApiClient, path_of
from cliffwatch.model.run_state import VerdictName

JunitOption = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write the verdict and each limit as JUnit XML, for CI.")
]
#: Control characters and lone surrogates, which XML 1.0 cannot hold in any form (section 2.2).
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def require_writable(path: Path) -> None:
    """Check that a run's result can be written; call this before the run is started. Raises Problem(bad_request).

    The file of an earlier run is removed, so that a CI server does not mistake it for the result of this run.
    """
    try:
        path.open("ab").close()
        if path.is_file():
            path.unlink()
    except OSError as error:
        raise Problem(Code.BAD_REQUEST, f"--junit: {path} cannot be written: {error.strerror}") from error


def write_junit(
    api: ApiClient, run: Mapping[str, Any], compared: Mapping[str, Any] | None, workload: str, target: str, path: Path
) -> None:
    """Write the result of a finished run, and of its comparison with earlier runs, as JUnit XML.

    Raises Problem if the file cannot be written.
    """
    document = junit_of(run, _limits(api, run), compared, workload, target)
    try:
        path.write_bytes(document)
    except OSError as error:
        raise Problem(Code.BAD_REQUEST, f"--junit: {path} cannot be written: {error.strerror}") from error


def junit_of(
    run: Mapping[str, Any],
    limits: Sequence[Mapping[str, Any]],
    compared: Mapping[str, Any] | None,
    workload: str,
    target: str,
) -> bytes:
    """JUnit XML of a run and of its comparison as the API shows them, and of the limits in the run's report.

    A `failure` is due to the target, an `error` means that the run allows no statement about the target. The elements
    are those of the schema of Apache Ant's JUnit task, which CI servers agree on.
    """
    seconds = f"{run.get('elapsed_seconds') or 0.0:.3f}"
    suite = ET.Element("testsuite", name=_text(f"cliffwatch {workload}"), timestamp=_timestamp(run), time=seconds)
    properties = ET.SubElement(suite, "properties")
    facts = {"run": run["id"], "workload": workload, "target": target, "verdict": run.get("verdict")}
    for name, value in {**facts, "report": run.get("report")}.items():
        if value:
            ET.SubElement(properties, "property", name=name, value=_text(str(value)))
    cases = [_verdict_case(run), *map(_limit_case, limits), *(_comparison_cases(compared) if compared else ())]
    for case in cases:
        # Without a version, so that a test keeps its name when its workload changes.
        case.set("classname", _text(f"cliffwatch.{workload.partition('@')[0]}"))
        case.set("time", seconds if case is cases[0] else "0")
        suite.append(case)
    suite.set("tests", str(len(cases)))
    for kind in ("failure", "error"):
        suite.set(f"{kind}s", str(sum(case.find(kind) is not None for case in cases)))
    suite.set("skipped", "0")
    ET.indent(suite)
    written: bytes = ET.tostring(suite, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _verdict_case(run: Mapping[str, Any]) -> ET.Element:
    verdict, reasons = run.get("verdict"), [str(reason) for reason in run.get("reasons") or ["no reasons were given"]]
    case = ET.Element("testcase", name="verdict")
    if verdict != VerdictName.PASS:
        kind = "failure" if verdict == VerdictName.DEGRADED else "error"
        found = ET.SubElement(case, kind, type=str(verdict), message=_text(reasons[0]))
        found.text = _text("\n".join(reasons))
    return case


def _limit_case(limit: Mapping[str, Any]) -> ET.Element:
    case = ET.Element("testcase", name=_text(f"limit: {limit['limit']}"))
    if limit["broken"]:
        spans = list(_spans(limit))
        found = ET.SubElement(case, "failure", type="limit", message=_text(spans[0]))
        found.text = _text("\n".join(spans))
    elif not limit["held"]:
        ET.SubElement(case, "error", type="limit", message=_text(str(limit.get("unjudged", "it was not judged"))))
    return case


def _comparison_cases(compared: Mapping[str, Any]) -> Iterator[ET.Element]:
    """A case for each figure that was compared; one in all where none was."""
    name = f"not worse than label:{compared['label']}"
    for figure in compared["figures"] or [{**compared, "name": ""}]:
        case = ET.Element("testcase", name=_text(": ".join(filter(None, (name, figure["name"])))))
        if figure["outcome"] != Outcome.NOT_WORSE:
            kind = "failure" if figure["outcome"] == Outcome.WORSE else "error"
            found = ET.SubElement(case, kind, type=figure["outcome"], message=_text(figure["summary"]))
            found.text = _text(compared["summary"])
        yield case


def _spans(limit: Mapping[str, Any]) -> Iterator[str]:
    for span in limit["broken"]:
        yield f"broken from {span['start']} to {span['end']}: {span['worst']} at worst"
    if omitted := limit.get("broken_omitted"):
        yield f"and {omitted} times more"


def _limits(api: ApiClient, run: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Limits in the run's report; empty if there is no report: the run's verdict says why."""
    if not run.get("report"):
        return []
    limits: list[Mapping[str, Any]] = api.get(path_of("runs", run["id"], "report"))["limits"]
    return limits


def _timestamp(run: Mapping[str, Any]) -> str:
    """Start time of the run (else its creation): ISO 8601 in UTC without a zone, as the schema requires."""
    return str(run.get("started_at") or run["created_at"])[:19]


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
