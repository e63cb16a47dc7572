"""Limits that a run could not judge: on write amplification where no drive reports it, on a part that it has not."""

from collections.abc import Sequence

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.suggestion import did_you_mean
from cliffwatch.model.limits import ANY_PART, LimitSubject, parse_limit
from cliffwatch.model.workload import Workload
from cliffwatch.telemetry.drive_health import DriveSource, drives_with_media_bytes
from cliffwatch.telemetry.prometheus import QueryFailed


def require_parts(workload: Workload, parts: Sequence[str]) -> None:
    """Check that a run has the parts that its limits name. `parts`: their names, none for a run with one target.

    Raises Problem(workload_invalid).
    """
    faults = []
    for place, text in enumerate(workload.limits):
        part = parse_limit(text).part
        if part in ("", ANY_PART, *parts):
            continue
        known = f"; parts: {', '.join(parts)}" if parts else "; a run with one target has none, so leave `of part` out"
        hint = did_you_mean(part, parts) or known
        faults.append(FieldFault(f"limits.{place}", f"{text!r}: the run has no part {part!r}{hint}"))
    if faults:
        raise Problem(Code.WORKLOAD_INVALID, "the workload's limits do not fit the run's targets", faults)


def notes_on_limits(workload: Workload, drives: Sequence[str], source: DriveSource, now: float) -> list[str]:
    """Warn before a run of limits on write amplification that cannot be judged: the run would end as `invalid`.

    If there are `drives` (those that are watched, by their names in `source`), Prometheus is queried at `now`, in
    seconds since the epoch.
    """
    limits = [text for text in workload.limits if parse_limit(text).subject is LimitSubject.AMPLIFICATION]
    if not limits:
        return []
    if not drives:
        why = "since no drive is measured on this target: the run would be invalid"
        remedy = "leave the limit out, or name a target on a drive"
        return [f'the limit "{text}" cannot be judged, {why}; {remedy}' for text in limits]
    names = " and ".join(drives)
    try:
        if not drives_with_media_bytes(source, now).isdisjoint(drives):
            return []
        why = f"since {names} reports no bytes written to its media: the run would be invalid"
    except QueryFailed as error:
        why = f"if it stays unknown which bytes {names} writes to its media: the run would be invalid ({error})"
    remedy = "leave the limit out, or see that `cliffwatch_drive_media_written_bytes_total` is there for the drive"
    return [f'the limit "{text}" cannot be judged, {why}; {remedy}' for text in limits]
