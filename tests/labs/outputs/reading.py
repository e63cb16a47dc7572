"""Read lines as the output of a program, and the refusal where they are none."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cliffwatch.analysis.finding import Sample
from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.main import app
from cliffwatch.labs.outputs.formats import Output, read_output
from cliffwatch.labs.outputs.names import LatencyUnit, OutputFormat


def analyze(path: Path, format_: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["analyze", "--from", format_, str(path), *arguments])


def read(format_: OutputFormat, *lines: str, name: str = "out.txt", unit: LatencyUnit | None = None) -> Output:
    return read_output(lines, name, format_, unit)


def refusal(format_: OutputFormat, *lines: str, name: str = "out.txt") -> str:
    with pytest.raises(Problem) as caught:
        read(format_, *lines, name=name)
    assert caught.value.code is Code.BAD_REQUEST
    (fault,) = caught.value.faults
    return f"{fault.field}: {fault.message}"


def verdict(path: Path, format_: OutputFormat, lines: Iterable[str], *arguments: str) -> tuple[str, str]:
    """Verdict on a file of these lines, and what is printed beside it; `refused` and why where it cannot be read."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    result = analyze(path, format_, *arguments)
    if isinstance(result.exception, Problem):
        return "refused", "; ".join(f"{fault.field}: {fault.message}" for fault in result.exception.faults)
    return result.stdout.splitlines()[0].removeprefix("verdict: "), result.stdout


def first(output: Output) -> Sample:
    return output.table.samples[0]
