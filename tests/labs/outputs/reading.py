"""Read lines as the output of a program, and the refusal where they are none."""

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


def first(output: Output) -> Sample:
    return output.table.samples[0]
