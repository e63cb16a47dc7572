"""Name the drives of a run in one line, from its facts."""

from collections.abc import Mapping
from typing import Any

#: Drives that are named before the rest is counted.
_NAMED = 3


def shown_drives(facts: Mapping[str, Any]) -> str:
    """Drives in facts.json as text, such as `nvme0n1 (Example 4TB, S1AGING)`; empty where it has none.

    A drive without a serial or WWN is named by its backing file, and one of another host by its `instance` as well.
    """
    found = facts.get("drives")
    drives = [each for each in found if isinstance(each, dict) and "name" in each] if isinstance(found, list) else []
    more = f" and {len(drives) - _NAMED} more" if len(drives) > _NAMED else ""
    return ", ".join(map(_shown, drives[:_NAMED])) + more


def _shown(drive: Mapping[str, Any]) -> str:
    identity = drive.get("serial") or drive.get("wwn") or drive.get("backing_file")
    known = ", ".join(str(each) for each in (drive.get("model"), identity) if each)
    name = f"{drive['name']} of {drive['instance']}" if drive.get("instance") else str(drive["name"])
    return f"{name} ({known})" if known else name
