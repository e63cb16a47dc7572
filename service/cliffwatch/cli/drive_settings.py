"""`--set KEY=VALUE` of the emulated drive: check the names, and quote in errors what the user typed."""

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.suggestion import did_you_mean
from cliffwatch.cli.tree import given_repeatedly

_FLAG = re.compile(r"^ +--([a-z][a-z-]*)", re.MULTILINE)
_REFUSED = re.compile(r"(?P<drive>.* cannot be served: )--(?P<flag>[a-z-]+): (?P<advice>.*)")
#: Types of values as the drive model's error messages name them, and as users know them.
_KINDS = {"u32": "a whole number", "u64": "a whole number", "f64": "a number", "a boolean": "true or false"}


def setting_name(assignment: str) -> str:
    """Name of the setting in KEY=VALUE, as the drive model spells it: with - instead of _."""
    return assignment.partition("=")[0].strip().replace("_", "-")


def typed_by_name(assignments: Iterable[str], flags: Mapping[str, object] | None = None) -> dict[str, str]:
    """Text typed for each setting: by `--set KEY=VALUE`, or by a flag of the setting's name.

    Raises Problem(bad_request) where a setting was given more than once: the last value would silently win.
    """
    typed: dict[str, list[str]] = {}
    for name, value in (flags or {}).items():
        if value is not None:
            typed[name] = [f"--{name} {value}"]
    for assignment in assignments:
        typed.setdefault(setting_name(assignment), []).append(f"--set {assignment}")
    for name, given in typed.items():
        if len(given) > 1:
            raise given_repeatedly(name, given)
    return {name: given[0] for name, given in typed.items()}


def check_names(program: Path, assignments: Iterable[str], code: Code) -> None:
    """Refuse every `--set` of an unknown setting, and suggest the one that was meant. Raises Problem."""
    assignments = list(assignments)
    if not assignments:
        return
    text = subprocess.run([program, "simulate", "--help"], capture_output=True, text=True, check=True).stdout
    known = sorted(set(_FLAG.findall(text)) - {"help", "profile"})
    faults = []
    for assignment in assignments:
        name = setting_name(assignment)
        if name not in known:
            remedy = did_you_mean(name, known) or "; docs/drive.md names those there are"
            faults.append(FieldFault(f"--set {assignment}", f"unknown setting {name!r}{remedy}"))
    if faults:
        raise Problem(code, "the drive cannot be as it was asked for", faults)


def with_typed(problem: Problem, assignments: Iterable[str], typed: Mapping[str, str]) -> Problem:
    """Reword the drive model's error: name what the user `typed` for the setting instead of the model's own flag."""
    if refused := _REFUSED.fullmatch(problem.detail):
        what = typed.get(refused["flag"], f"{refused['flag']} in the profile")
        return Problem(problem.code, f"{refused['drive']}{what}: {refused['advice']}", problem.faults)
    faults = list(problem.faults)
    for assignment in assignments:
        name, value = setting_name(assignment), assignment.partition("=")[2]
        if f" {name}: " in problem.detail or f'"{value}"' in problem.detail:
            expected = re.search(r"expected (an? \w+|\w+)", problem.detail)
            what = _KINDS.get(expected[1], expected[1]) if expected else problem.detail.rpartition(": see ")[0]
            message = f"{value!r} is not {what}" if expected else what.rpartition("served: ")[2]
            faults.append(FieldFault(f"--set {assignment}", message))
    return Problem(problem.code, problem.detail, faults)
