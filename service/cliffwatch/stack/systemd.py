"""systemd unit that keeps the service running, and a scope (control group) of its own for each run.

One unit is enough: it starts the service, then `cliffwatch up`, which waits until the service answers and starts the
watchers. Stopping the unit ends both but no run (KillMode=process); a restart of the unit switches to a newer version
while runs go on.
"""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from string import Template

UNIT = "cliffwatch.service"
UNITS_DIRECTORY = Path("/etc/systemd/system")
#: File in which the machine's owner sets CLIFFWATCH_… variables for the unit.
ENVIRONMENT_FILE = Path("/etc/default/cliffwatch")
_BOOTED = Path("/run/systemd/system")
_SLICE = "cliffwatch.slice"
#: Capabilities for what root does here: open drives and what lies on them, make and unmake loop devices and mounts
#: (aging drives), read the health of drives, load the block-layer probe, lock buffers in memory, and signal processes
#: that it started.
_CAPABILITIES = (
    "CAP_BPF",
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_IPC_LOCK",
    "CAP_KILL",
    "CAP_PERFMON",
    "CAP_SYS_ADMIN",
    "CAP_SYS_PTRACE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_RESOURCE",
)
#: Only /usr, /boot and /etc are read-only (ProtectSystem=full): a run's target may be anywhere else.
_TEMPLATE = Template(
    """\
# Made by `cliffwatch install-units`. Settings go into $environment_file, as CLIFFWATCH_NAME=value.
[Unit]
Description=Cliffwatch: soak tests that say when, where and why latency fell off a cliff
After=network-online.target local-fs.target time-sync.target
Wants=network-online.target

[Service]
Type=exec
Environment=CLIFFWATCH_STATE_DIRECTORY=/var/lib/cliffwatch
EnvironmentFile=-$environment_file
ExecStart=$program serve
ExecStartPost=$program up --timeout 60s
ExecStop=$program down
KillMode=process
Restart=on-failure
RestartSec=2s
TimeoutStartSec=120s
TimeoutStopSec=60s
StateDirectory=cliffwatch
StateDirectoryMode=0700
UMask=0077
LimitMEMLOCK=infinity
LimitNOFILE=65536
$identity
NoNewPrivileges=yes
LockPersonality=yes
ProtectHostname=yes
ProtectKernelModules=yes
ProtectSystem=full
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
"""
)


def unit(program: Path, user: str | None) -> str:
    """Text of the unit. With `user`, the service runs as that user, in the group `disk` and without capabilities."""
    identity = (
        f"CapabilityBoundingSet={' '.join(_CAPABILITIES)}"
        if user is None
        else f"User={user}\nSupplementaryGroups=disk\nCapabilityBoundingSet="
    )
    return _TEMPLATE.substitute(program=program, environment_file=ENVIRONMENT_FILE, identity=identity)


def scope_for(run_id: str, attempt: str) -> list[str]:
    """Beginning of a worker's command that starts it in a scope of its own; empty unless systemd started the service.

    With a scope, processor time and memory of the run are accounted separately, and ending the service's unit does not
    affect the run.
    """
    if not _makes_scopes():
        return []
    return [
        *_systemd_run(),
        f"--unit=cliffwatch-run-{run_id}-{attempt}.scope",
        f"--description=Cliffwatch run {run_id}",
        "--property=CPUAccounting=yes",
        "--property=MemoryAccounting=yes",
        "--",
    ]


@cache
def _makes_scopes() -> bool:
    """Whether systemd grants scopes, tried once per process: a worker whose scope is refused would not start."""
    # INVOCATION_ID: systemd sets it for what it starts, systemd.exec(5).
    if "INVOCATION_ID" not in os.environ or not _BOOTED.is_dir() or shutil.which("systemd-run") is None:
        return False
    tried = subprocess.run([*_systemd_run(), "--", "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return tried.returncode == 0


def _systemd_run() -> list[str]:
    return ["systemd-run", "--scope", "--quiet", "--collect", f"--slice={_SLICE}"]
