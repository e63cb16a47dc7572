"""Preflight check of a target by an engine's own process, which prints one JSON object and ends."""

import subprocess
from collections.abc import Sequence

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.finite_json import lenient_json
from cliffwatch.engines.contract import Probe


def run_check(command: Sequence[str], patience_seconds: float, asked: str) -> Probe:
    """Result of `command`, which prints `{"notes": […], "unreachable": […], "refused": […]}`, lists of sentences.

    `asked` names what it asks, such as "the server", for one that says nothing in time. Raises Problem(internal) when
    its output cannot be parsed.
    """
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=patience_seconds)
    except subprocess.TimeoutExpired:
        return Probe(unreachable=(f"{asked} did not answer within {patience_seconds:g} s",))
    try:
        found = lenient_json(done.stdout)[0]
        return Probe(*(tuple(map(str, found[part])) for part in ("notes", "unreachable", "refused")))
    except (ValueError, KeyError, TypeError) as error:
        said = done.stderr.decode("utf-8", "replace").strip()[-500:]
        raise Problem(Code.INTERNAL, f"what the check of {asked} found cannot be read: {said or error!r}") from error
