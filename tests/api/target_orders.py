"""Targets as requests name them."""

from pathlib import Path
from typing import Any

WORKLOAD = {
    "version": 1,
    "name": "small",
    "engine": "fio",
    "window": "1s",
    "phases": {"soak": "10s"},
    "free_space_reserve_ratio": 0.0,
    "load": {"preset": "small-direct-writes", "jobs": 2, "size": "1MiB"},
}


def order(target: dict[str, Any], **load: Any) -> dict[str, Any]:
    return {"workload": {**WORKLOAD, "load": {**WORKLOAD["load"], **load}}, "target": target}  # type: ignore[dict-item]


def directory(path: Path) -> dict[str, Any]:
    return {"kind": "directory", "path": str(path)}
