"""Asking brokers before a run whether its load could begin: `cliffwatch-load kafka --check`."""

import json
import subprocess
from typing import Any

from cliffwatch.engines.contract import Probe

#: The load generator gives each broker three seconds, two times over; looking up names comes on top.
_PATIENCE_SECONDS = 20.0


def ask_brokers(command: list[str]) -> Probe:
    """What the brokers said. `command` is the load's own, which `--check` turns into the question."""
    try:
        done = subprocess.run(
            [*command, "--check"], capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS
        )
    except subprocess.TimeoutExpired:
        return Probe(unreachable=(f"the brokers did not answer in {_PATIENCE_SECONDS:g} s; are their names right?",))
    if done.returncode:
        return Probe(refused=(done.stderr.strip() or f"the brokers could not be asked: exit status {done.returncode}",))
    return probe_of(json.loads(done.stdout))


def probe_of(found: dict[str, Any]) -> Probe:
    """What was found, in sentences. One server that answers finds the others; then every broker has to answer."""
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
    note = f"the cluster has {count}: {', '.join(broker['address'] for broker in brokers)}"
    return Probe((*([note] if brokers else []), *silent), tuple(hidden), tuple(found["faults"]))


def _why(asked: dict[str, Any]) -> str:
    return str(asked["fault"]).removeprefix(f"connecting to {asked['address']}: ")
