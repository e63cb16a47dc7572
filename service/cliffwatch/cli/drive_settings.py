"""`--set KEY=VALUE` of the modelled drive: faults that name what was typed."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.suggestion import did_you_mean

_FLAG = re.compile(r"^ +--([a-z][a-z-]*)", re.MULTILINE)
#: What the model's own refusals call a kind of value, and what people call it.
_KINDS = {"u32": "a whole number", "u64": "a whole number", "f64": "a number", "a boolean": "true or false"}


def check_names(program: Path, assignments: Iterable[str], code: Code) -> None:
    """Raises Problem that names every `--set` of a setting that there is not, with the one that was meant."""
    assignments = list(assignments)
    if not assignments:
        return
    text = subprocess.run([program, "simulate", "--help"], capture_output=True, text=True, check=True).stdout
    known = sorted(set(_FLAG.findall(text)) - {"help", "profile"})
    faults = []
    for assignment in assignments:
        name = assignment.partition("=")[0].strip().replace("_", "-")
        if name not in known:
            remedy = did_you_mean(name, known) or "; docs/drive.md names those there are"
            faults.append(FieldFault(f"--set {assignment}", f"unknown setting {name!r}{remedy}"))
    if faults:
        raise Problem(code, "the drive cannot be as it was asked for", faults)


def with_typed(problem: Problem, assignments: Iterable[str]) -> Problem:
    """The model's refusal with the `--set` that it is about, where it is about one."""
    faults = list(problem.faults)
    for assignment in assignments:
        name, _, value = assignment.partition("=")
        name = name.strip().replace("_", "-")
        if f" {name}: " in problem.detail or f'"{value}"' in problem.detail:
            expected = re.search(r"expected (an? \w+|\w+)", problem.detail)
            what = _KINDS.get(expected[1], expected[1]) if expected else problem.detail.rpartition(": see ")[0]
            message = f"{value!r} is not {what}" if expected else what.rpartition("served: ")[2]
            faults.append(FieldFault(f"--set {assignment}", message))
    return Problem(problem.code, problem.detail, faults)
