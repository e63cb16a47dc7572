"""Name the drives of a run in one line, from its facts."""

from collections.abc import Mapping
from typing import Any

from cliffwatch.model.drive_id import DriveId

#: Drives that are named before the rest is counted.
_NAMED = 3


def shown_drives(facts: Mapping[str, Any]) -> str:
    """Drives in facts.json as text, such as `nvme0n1 (Example 4TB, S1AGING)`; empty where it has none.

    A drive without a serial or WWN is named by its backing file, and one of another host by its `instance` as well.
    """
    drives = _drives(facts)
    more = f" and {len(drives) - _NAMED} more" if len(drives) > _NAMED else ""
    return ", ".join(map(_shown, drives[:_NAMED])) + more


def drive_names(facts: Mapping[str, Any]) -> dict[str, str]:
    """Names of the drives in facts.json by how series name them: by number, in a run with several parts by both."""
    names: dict[str, str] = {}
    for drive in _drives(facts):
        number, part = str(drive.get("major_minor", "")), str(drive.get("part", ""))
        names |= dict.fromkeys((number, str(DriveId(number, part))), str(drive["name"]))
    return names


def drives_of_parts(facts: Mapping[str, Any]) -> dict[str, str]:
    """Names of the drives below each part of a run, as text; of parts named by their only drive, nothing."""
    found: dict[str, list[str]] = {}
    for drive in _drives(facts):
        if part := str(drive.get("part", "")):
            found.setdefault(part, []).append(str(drive["name"]))
    return {part: ", ".join(names) for part, names in found.items() if names != [part]}


def _drives(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = facts.get("drives")
    return [each for each in found if isinstance(each, dict) and "name" in each] if isinstance(found, list) else []


def _shown(drive: Mapping[str, Any]) -> str:
    identity = drive.get("serial") or drive.get("wwn") or drive.get("backing_file")
    known = ", ".join(str(each) for each in (drive.get("model"), identity) if each)
    name = f"{drive['name']} of {drive['instance']}" if drive.get("instance") else str(drive["name"])
    return f"{name} ({known})" if known else name
