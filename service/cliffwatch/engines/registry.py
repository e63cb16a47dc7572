"""Every engine that there is. A new engine is one module and one row here."""

from typing import Any

from pydantic import BaseModel, ValidationError

from cliffwatch.engines.base import Engine
from cliffwatch.engines.fio.engine import FioEngine
from cliffwatch.engines.kafka.engine import KafkaEngine
from cliffwatch.engines.storage.engine import StorageEngine
from cliffwatch.engines.synthetic import SyntheticEngine
from cliffwatch.errors import Code, FieldFault, Problem
from cliffwatch.runs.faults import faults_of
from cliffwatch.runs.specification import Workload
from cliffwatch.suggestion import did_you_mean

ENGINES: dict[str, Engine] = {
    engine.name: engine for engine in (FioEngine(), KafkaEngine(), StorageEngine(), SyntheticEngine())
}


def engine_of(workload: Workload) -> Engine:
    """The engine that a workload names. Raises Problem(workload_invalid)."""
    engine = ENGINES.get(workload.engine)
    if engine is None:
        hint = did_you_mean(workload.engine, ENGINES) or f"; there are: {', '.join(sorted(ENGINES))}"
        fault = FieldFault("engine", f"there is no engine {workload.engine!r}{hint}")
        raise Problem(Code.WORKLOAD_INVALID, "the workload is not valid", [fault])
    return engine


def load_of(workload: Workload) -> Any:
    """The workload's `load`, validated by its engine. Raises Problem(workload_invalid) that names the fields."""
    model: type[BaseModel] = engine_of(workload).load_model
    try:
        return model.model_validate(workload.load)
    except ValidationError as error:
        raise Problem(Code.WORKLOAD_INVALID, "the workload is not valid", faults_of(error, "load", model)) from error


def check_target_kind(workload: Workload, kind: str) -> None:
    """Raises Problem(workload_invalid) when the workload's engine cannot load such a target."""
    engine = engine_of(workload)
    if kind not in engine.target_kinds:
        kinds = ", ".join(sorted(engine.target_kinds))
        fault = FieldFault("target.kind", f"the engine {engine.name} loads {kinds}, not {kind}")
        raise Problem(Code.WORKLOAD_INVALID, "the workload cannot be run on this target", [fault])
