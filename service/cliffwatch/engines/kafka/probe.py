"""Preflight check of brokers before a run: whether the load could begin (`cliffwatch-load kafka --check`)."""

import subprocess
from typing import Any

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.finite_json import lenient_json
from cliffwatch.engines.contract import Probe

#: The load generator waits three seconds for each broker, twice; name resolution comes on top.
_PATIENCE_SECONDS = 20.0


def ask_brokers(command: list[str]) -> Probe:
    """Run the preflight check. `command` is the load's own, to which `--check` is added.

    Raises Problem(internal) when the program's output cannot be parsed.
    """
    try:
        done = subprocess.run([*command, "--check"], capture_output=True, check=False, timeout=_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        return Probe(unreachable=(f"the brokers did not answer in {_PATIENCE_SECONDS:g} s; are their names right?",))
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        return Probe(refused=(said or f"the brokers could not be asked: exit status {done.returncode}",))
    return answer_of(done.stdout)


def answer_of(output: bytes) -> Probe:
    """Parse the program's output into a preflight result. Raises Problem(internal) when it cannot be parsed."""
    try:
        return probe_of(lenient_json(output)[0])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        words = f"the answer of cliffwatch-load about the brokers cannot be read: {error!r:.200}; build it again"
        raise Problem(Code.INTERNAL, words) from error


def probe_of(found: dict[str, Any]) -> Probe:
    """Preflight result, in sentences. One bootstrap server has to answer; of the brokers that it names, all have to."""
    servers, brokers = found["servers"], found["brokers"]
    silent = [f"{server['address']} does not answer: {_why(server)}" for server in servers if server["fault"]]
    if len(silent) == len(servers):
        remedy = "start the broker, or correct the address or `load.security`"
        return Probe(unreachable=tuple(f"{sentence}; {remedy}" for sentence in silent))
    hidden = [
        f"the cluster names {broker['address']} as one of its brokers, which does not answer: {_why(broker)}; correct "
        "its advertised listener, or open the way to it"
        for broker in brokers
        if broker["fault"]
    ]
    count = "1 broker" if len(brokers) == 1 else f"{len(brokers)} brokers"
    note = f"the cluster has {count}: {', '.join(str(broker['address']) for broker in brokers)}"
    refused = tuple(_sentence(fault) for fault in found["faults"])
    return Probe((*([note] if brokers else []), *silent), tuple(hidden), refused)


def _why(asked: dict[str, Any]) -> str:
    return _sentence(asked["fault"]).removeprefix(f"connecting to {asked['address']}: ")


def _sentence(fault: Any) -> str:
    if not isinstance(fault, str) or not fault:
        raise ValueError(f"a fault that says nothing: {fault!r:.40}")
    return fault
