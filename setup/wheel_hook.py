"""What a wheel gets beside the packages: what the service reads, the Rust programs, their licences, and an SBOM.

`setup/wheel` makes all but the first and names their directory in CLIFFWATCH_WHEEL_PARTS; `tag` there says which
machines the programs are for.
"""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: What cliffwatch/base/resources.py names, by the paths of a checkout, which are kept below `cliffwatch/resources/`.
RESOURCES = (
    "alerts/alertmanager",
    "alerts/prometheus",
    "alerts/rules",
    "alerts/runbooks",
    "dashboards/json",
    "dashboards/provisioning",
    "drive/profiles",
    "exporters/ebpf/check",
    "migrations",
)
NOTICES = "THIRD-PARTY-LICENSES.txt"
SBOM = "cliffwatch.cdx.json"


class WheelHook(BuildHookInterface[Any]):
    """Called once for each wheel that is built, also for the one without content that leads to a checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raises ValueError for a wheel that would be without its programs."""
        if version == "editable":
            return
        named = os.environ.get("CLIFFWATCH_WHEEL_PARTS")
        if not named:
            raise ValueError("a wheel carries programs that have to be built first: make wheel")
        parts = Path(named)
        build_data["tag"] = (parts / "tag").read_text(encoding="utf-8").strip()
        build_data["pure_python"] = False
        for path in RESOURCES:
            build_data["force_include"][path] = f"cliffwatch/resources/{path}"
        for program in sorted((parts / "programs").iterdir()):
            build_data["shared_scripts"][str(program)] = program.name
        build_data["sbom_files"].append(str(parts / SBOM))
        information = f"cliffwatch-{self.metadata.version}.dist-info"
        build_data["force_include"][str(parts / NOTICES)] = f"{information}/licenses/{NOTICES}"
