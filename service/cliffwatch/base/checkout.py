"""What the service reads beside its package, and where it is: the one place that reaches out of the package."""

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]
ALERTS_DIRECTORY = _ROOT / "alerts"
DASHBOARDS_DIRECTORY = _ROOT / "dashboards" / "json"
MIGRATIONS_DIRECTORY = _ROOT / "migrations"
PROBE_DIRECTORY = _ROOT / "exporters" / "ebpf"
PROFILES_DIRECTORY = _ROOT / "drive" / "profiles"
#: The drive that the drill ages, and that an aging drive is without a profile of its own.
DRILL_PROFILE = PROFILES_DIRECTORY / "drill.yaml"
