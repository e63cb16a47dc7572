"""Import a workload file and a driver file together, as a Cliffwatch workload and its target."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.engines.registry import checked_workload
from cliffwatch.labs.omb.driver import ImportedDriver, import_driver
from cliffwatch.labs.omb.files import Remarks, read_mapping
from cliffwatch.labs.omb.workload import ImportedLoad, import_workload
from cliffwatch.model.target import BrokerTarget
from cliffwatch.model.workload import Workload

#: Requests in flight that idempotence allows.
MOST_IN_FLIGHT = 5


@dataclass(frozen=True, slots=True)
class Imported:
    """Imported workload and target. `warnings` are on keys whose loss changes what is measured, `notes` on others."""

    workload: Workload
    target: BrokerTarget
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def import_files(workload_path: Path, driver_path: Path) -> Imported:
    """Import a workload file and a driver file. Raises Problem: bad_request for a file that cannot be imported,
    workload_invalid if the imported workload is invalid."""
    remarks = Remarks()
    load = import_workload(read_mapping(workload_path, "workload"), workload_path, remarks)
    driver = import_driver(read_mapping(driver_path, "driver"), remarks)
    workload = checked_workload(_document(load, driver, remarks))
    target = _target(driver)
    return Imported(workload, target, tuple(remarks.warnings), tuple(remarks.notes))


def _target(driver: ImportedDriver) -> BrokerTarget:
    try:
        return BrokerTarget(bootstrap_servers=driver.bootstrap_servers)
    except ValidationError as error:
        detail = "the driver's bootstrap.servers cannot be taken over"
        raise Problem(Code.BAD_REQUEST, detail, faults_of(error, "driver.commonConfig")) from error


def _document(load: ImportedLoad, driver: ImportedDriver, remarks: Remarks) -> dict[str, Any]:
    topics = load.topics if "existing" in load.topics else load.topics | driver.topics
    body: dict[str, Any] = {"topics": topics}
    if load.producer is not None:
        body["producer"] = _buffered(driver.producer | load.producer, remarks)
    if load.consumer is not None:
        body["consumer"] = load.consumer | driver.consumer
    if load.search is not None:
        body["search"] = load.search
    if driver.security:
        body["security"] = driver.security
    return {
        "version": 1,
        "name": load.name,
        "description": load.description,
        "engine": "kafka",
        "window": load.window,
        "phases": load.phases,
        "load": body,
    }


def _buffered(producer: dict[str, Any], remarks: Remarks) -> dict[str, Any]:
    """Producer settings that Kafka's own client accepts: idempotence is switched off if acks is not `all`, else
    requests in flight are limited to MOST_IN_FLIGHT. Each change gives a warning."""
    if not producer.get("idempotence"):
        return producer
    if producer.get("acks", "all") != "all":
        remarks.warn(
            "producerConfig.enable.idempotence", f"left out, since it needs acks=all and not {producer['acks']}"
        )
        return producer | {"idempotence": False}
    if producer.get("max_in_flight", 1) > MOST_IN_FLIGHT:
        words = (
            f"{producer['max_in_flight']} become {MOST_IN_FLIGHT}, the most that idempotence allows; Kafka's own "
            "client refuses the two together"
        )
        remarks.warn("producerConfig.max.in.flight.requests.per.connection", words)
        return producer | {"max_in_flight": MOST_IN_FLIGHT}
    return producer
