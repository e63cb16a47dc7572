"""Make the request that repeats a run."""

from pathlib import Path

from cliffwatch.app.orders import read_order
from cliffwatch.app.runs import durations_of
from cliffwatch.app.workloads import WorkloadService
from cliffwatch.base.errors import Code, Problem
from cliffwatch.journal import EventType, JournalReader
from cliffwatch.journal.annotated import annotations_in
from cliffwatch.model.drill import variant_of
from cliffwatch.model.request import RunRequest, Submission
from cliffwatch.model.target import AnyTarget, DeviceTarget
from cliffwatch.model.workload import workload_from
from cliffwatch.store.models import RunRow


def request_of(row: RunRow) -> RunRequest:
    """The request that repeats a run: its workload, targets, drives and current labels.

    A workload that came with the request, or with an imported run, is included as a document; a stored one is named by
    its version. The erasure of a drive has to be confirmed again. Raises Problem: journal_unreadable, and wrong_state
    for a drill's run.
    """
    reader = JournalReader(Path(row.directory))
    order = read_order(reader)
    first, *more = (_unconfirmed(target) for target in order.parts.values())
    events = [stored.event for stored in reader.events()]
    labels = annotations_in(events).labels
    if variant := variant_of(labels):
        detail = (
            f"run {row.id} is of a drill, whose drive is deleted; start another: `cliffwatch drill --variant {variant}`"
        )
        raise Problem(Code.WRONG_STATE, detail)
    common = {
        "target": first,
        "more_targets": more,
        "labels": labels,
        "drives": order.drives,
        "part_names": order.part_names,
    }
    if row.workload_version is None:
        return RunRequest.model_validate({"workload": order.workload.model_dump(mode="json"), **common})
    asked = next(event.detail for event in events if event.type is EventType.STATE)
    replaced = Submission.from_detail(asked, str(order.target)).replaced_durations
    durations = {name: text for name, text in durations_of(order.workload).items() if name in replaced}
    return RunRequest.model_validate(
        {"workload": f"{row.workload_name}@{row.workload_version}", "durations": durations, **common}
    )


def _unconfirmed(target: AnyTarget) -> AnyTarget:
    return target.model_copy(update={"confirmation": ""}) if isinstance(target, DeviceTarget) else target


def stored_workload(row: RunRow, workloads: WorkloadService) -> str | None:
    """`name@version` of a run's workload, also of one that came with the run's request and was stored since, if the
    newest of its name is the same; None where it is not stored. Raises Problem(journal_unreadable)."""
    if row.workload_version is not None:
        return f"{row.workload_name}@{row.workload_version}"
    try:
        newest = workloads.find(row.workload_name)
    except Problem as problem:
        if problem.code is not Code.NOT_FOUND:
            raise
        return None
    is_same = workload_from(newest.document) == read_order(JournalReader(Path(row.directory))).workload
    return f"{newest.name}@{newest.version}" if is_same else None
