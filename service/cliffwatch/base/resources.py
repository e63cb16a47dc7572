"""Paths of resource files outside the package: alerts, dashboards, migrations, drive profiles.

A wheel carries these directories inside the package, under the names that they have in a checkout.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_IN_WHEEL = _PACKAGE / "resources"
_ROOT = _IN_WHEEL if _IN_WHEEL.is_dir() else _PACKAGE.parents[1]
ALERTS_DIRECTORY = _ROOT / "alerts"
DASHBOARDS_DIRECTORY = _ROOT / "dashboards" / "json"
MIGRATIONS_DIRECTORY = _ROOT / "migrations"
PROBE_DIRECTORY = _ROOT / "exporters" / "ebpf"
PROFILES_DIRECTORY = _ROOT / "drive" / "profiles"
#: Profile of the drill's aging drive, and of aging drives without a profile of their own.
DRILL_PROFILE = PROFILES_DIRECTORY / "drill.yaml"
