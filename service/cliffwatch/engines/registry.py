"""Registry of engines. A new engine is one module and one row here."""

from typing import Any

from pydantic import BaseModel, ValidationError

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.base.suggestion import did_you_mean
from cliffwatch.engines.command.engine import CommandEngine
from cliffwatch.engines.contract import Engine
from cliffwatch.engines.fio.engine import FioEngine
from cliffwatch.engines.kafka.engine import KafkaEngine
from cliffwatch.engines.observe import ObserveEngine
from cliffwatch.engines.pgbench.engine import PgbenchEngine
from cliffwatch.engines.storage.engine import StorageEngine
from cliffwatch.engines.synthetic import SyntheticEngine
from cliffwatch.model.limits import parse_limit
from cliffwatch.model.workload import Workload, workload_from

ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        CommandEngine(),
        FioEngine(),
        KafkaEngine(),
        ObserveEngine(),
        PgbenchEngine(),
        StorageEngine(),
        SyntheticEngine(),
    )
}


def engine_of(workload: Workload) -> Engine:
    """The engine that a workload names. Raises Problem(workload_invalid)."""
    engine = ENGINES.get(workload.engine)
    if engine is None:
        raise Problem(Code.WORKLOAD_INVALID, "the workload is not valid", [_unknown_engine(workload.engine)])
    return engine


def load_of(workload: Workload) -> Any:
    """The workload's `load`, validated by its engine. Raises Problem(workload_invalid) that names the fields."""
    model: type[BaseModel] = engine_of(workload).load_model
    try:
        return model.model_validate(workload.load)
    except ValidationError as error:
        raise Problem(Code.WORKLOAD_INVALID, "the workload is not valid", faults_of(error, "load", model)) from error


def checked_workload(document: dict[str, Any]) -> Workload:
    """Validate a parsed document as a workload, `load` included. Raises Problem(workload_invalid) with all faults."""
    try:
        workload = workload_from(document)
    except Problem as problem:
        # Report the faults of both parts at once.
        problem.faults = [*problem.faults, *_faults_of_the_engine(document)]
        raise
    load_of(workload)
    if faults := _faults_of_limits(workload):
        raise Problem(Code.WORKLOAD_INVALID, "the workload is not valid", faults)
    return workload


def _faults_of_limits(workload: Workload) -> list[FieldFault]:
    """Faults of limits on latencies that the engine does not have, which could not be judged after the run."""
    known = engine_of(workload).latencies
    faults = []
    for place, text in enumerate(workload.limits):
        operation = parse_limit(text).operation
        if operation is not None and operation not in known:
            hint = did_you_mean(operation, known) or f"; latencies: {', '.join(known)}"
            faults.append(
                FieldFault(f"limits.{place}", f"{text!r}: {workload.engine} has no latency {operation!r}{hint}")
            )
    return faults


def _faults_of_the_engine(document: dict[str, Any]) -> list[FieldFault]:
    name, load = document.get("engine"), document.get("load", {})
    if not isinstance(name, str):
        return []
    if name not in ENGINES:
        return [_unknown_engine(name)]
    if not isinstance(load, dict):
        return []
    model: type[BaseModel] = ENGINES[name].load_model
    try:
        model.model_validate(load)
    except ValidationError as error:
        return faults_of(error, "load", model)
    return []


def _unknown_engine(name: str) -> FieldFault:
    hint = did_you_mean(name, ENGINES) or f"; engines: {', '.join(sorted(ENGINES))}"
    return FieldFault("engine", f"there is no engine {name!r}{hint}")


def check_target_kind(workload: Workload, kind: str) -> None:
    """Check that the workload's engine can load a target of this kind. Raises Problem(workload_invalid)."""
    engine = engine_of(workload)
    if kind not in engine.target_kinds:
        kinds = ", ".join(sorted(engine.target_kinds))
        fault = FieldFault("target.kind", f"the engine {engine.name} loads {kinds}, not {kind}")
        raise Problem(Code.WORKLOAD_INVALID, "the workload cannot be run on this target", [fault])
