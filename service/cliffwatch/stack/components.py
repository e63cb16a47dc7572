"""The watchers: name, command and readiness check of each, and the impact of a missing one.

All files of a watcher are below `stack/<name>/` in the state directory, and all watchers listen on loopback.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cliffwatch_drive_exporter.commands import PROGRAM as NVME
from cliffwatch_drive_exporter.controllers import find_controllers

from cliffwatch.base.resources import PROBE_DIRECTORY
from cliffwatch.model.settings import Settings

HOST = "127.0.0.1"
#: Prometheus' retention; the series of a run are collected into its journal long before.
RETENTION_TIME = "15d"
RETENTION_SIZE = "4GB"
#: Loop devices are drives under test here, which node_exporter leaves out by default.
IGNORED_DEVICES = r"^(z?ram|fd|sr)\d+$"
#: Debian's node_exporter leaves out /mnt, /media and /run, where drives under test are mounted.
IGNORED_MOUNT_POINTS = r"^/(dev|proc|sys)($|/)"
#: File systems that node_exporter leaves out by default, and those in memory: a host of containers has thousands.
IGNORED_FILE_SYSTEMS = (
    "^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|"
    "procfs|pstore|ramfs|rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tmpfs|tracefs)$"
)
COLLECTORS = ("cpu", "diskstats", "filesystem", "loadavg", "meminfo", "netdev", "pressure", "stat", "uname", "vmstat")
_CHECK_TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Component:
    """A watcher. `programs` are possible names of its executable, of which the first that is found is used.

    `arguments` follow the executable. `obstacle` returns why the watcher cannot be started on this machine, or None;
    `impact` is what is missing without the watcher.
    """

    name: str
    programs: tuple[str, ...]
    package: str
    port: Callable[[Settings], int]
    arguments: Callable[[Settings], list[str]]
    ready_path: str
    impact: str
    obstacle: Callable[["Component", Settings], str | None]

    def directory(self, settings: Settings) -> Path:
        """Directory of the watcher's configuration, data and log."""
        return stack_directory(settings) / self.name

    def address(self, settings: Settings) -> str:
        return f"{HOST}:{self.port(settings)}"

    def ready_url(self, settings: Settings) -> str:
        """URL that answers with 2xx when the watcher is ready."""
        return f"http://{self.address(settings)}{self.ready_path}"

    def command(self, settings: Settings) -> list[str]:
        """Executable and arguments to start the watcher; call this only if `obstacle` returned None."""
        program = self.program(settings)
        assert program is not None, f"{self.name} has an obstacle"
        return [program, *self.arguments(settings)]

    def program(self, settings: Settings) -> str | None:
        """Path of the watcher's executable; None where it is not installed."""
        return next((found for name in self.programs if (found := shutil.which(_below(name, settings)))), None)


def stack_directory(settings: Settings) -> Path:
    return settings.state_directory / "stack"


def _below(program: str, settings: Settings) -> str:
    """Name for `shutil.which`: with a slash, it is a path in the state directory, where programs are built."""
    return str(settings.state_directory / program) if "/" in program else program


def _not_installed(component: Component, settings: Settings) -> str | None:
    if component.program(settings) is not None:
        return None
    return f"it is not installed; `apt-get install {component.package}` installs it"


def _probe_cannot_run(component: Component, settings: Settings) -> str | None:
    """Reason why the block-layer probe cannot run, as exporters/ebpf/check gives it; None if the probe can run.

    The probe needs root and a kernel with BTF type data, and it must have been built.
    """
    environment = os.environ | {"STATE": str(settings.state_directory)}
    try:
        check = subprocess.run(
            [str(PROBE_DIRECTORY / "check")],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_CHECK_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"whether it can run here could not be found out: {error}"
    if check.returncode == 0:
        return None
    return (
        check.stderr.strip().removeprefix("The block-layer probe cannot run here: ").rstrip(".") or "its check failed"
    )


def _no_drives_to_ask(component: Component, settings: Settings) -> str | None:
    if shutil.which(NVME) is None:
        return f"{NVME} is not installed; `apt-get install {component.package}` installs it"
    return None if find_controllers() else "this machine has no NVMe drive"


def _drive_exporter(settings: Settings) -> list[str]:
    return ["-m", "cliffwatch_drive_exporter", f"--web.listen-address={DRIVE_EXPORTER.address(settings)}"]


def _node_exporter(settings: Settings) -> list[str]:
    return [
        f"--web.listen-address={NODE_EXPORTER.address(settings)}",
        "--collector.disable-defaults",
        *(f"--collector.{name}" for name in COLLECTORS),
        f"--collector.diskstats.device-exclude={IGNORED_DEVICES}",
        f"--collector.filesystem.mount-points-exclude={IGNORED_MOUNT_POINTS}",
        f"--collector.filesystem.fs-types-exclude={IGNORED_FILE_SYSTEMS}",
        "--log.level=warn",
    ]


def _ebpf_exporter(settings: Settings) -> list[str]:
    return [
        f"--web.listen-address={EBPF_EXPORTER.address(settings)}",
        f"--config.dir={settings.state_directory / 'ebpf' / 'config'}",
        "--config.names=block",
        "--capabilities.keep=none",
    ]


def _alertmanager(settings: Settings) -> list[str]:
    directory = ALERTMANAGER.directory(settings)
    return [
        f"--config.file={directory / 'alertmanager.yaml'}",
        f"--storage.path={directory / 'data'}",
        f"--web.listen-address={ALERTMANAGER.address(settings)}",
        f"--web.external-url=http://{ALERTMANAGER.address(settings)}",
        # Empty: no gossip with others, and no port for it.
        "--cluster.listen-address=",
        "--log.level=warn",
    ]


def _prometheus(settings: Settings) -> list[str]:
    directory = PROMETHEUS.directory(settings)
    return [
        f"--config.file={directory / 'prometheus.yaml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--storage.tsdb.retention.time={RETENTION_TIME}",
        f"--storage.tsdb.retention.size={RETENTION_SIZE}",
        f"--web.listen-address={PROMETHEUS.address(settings)}",
        f"--web.external-url=http://{PROMETHEUS.address(settings)}",
        "--log.level=warn",
    ]


NODE_EXPORTER = Component(
    name="node_exporter",
    programs=("prometheus-node-exporter", "node_exporter"),
    package="prometheus-node-exporter",
    port=lambda settings: settings.node_exporter_port,
    arguments=_node_exporter,
    ready_path="/",
    impact="no series of drives, file systems and memory",
    obstacle=_not_installed,
)
EBPF_EXPORTER = Component(
    name="ebpf_exporter",
    programs=("ebpf/bin/ebpf_exporter",),
    package="",
    port=lambda settings: settings.ebpf_exporter_port,
    arguments=_ebpf_exporter,
    ready_path="/",
    impact="no latency of the drive itself",
    obstacle=_probe_cannot_run,
)
DRIVE_EXPORTER = Component(
    name="drive_exporter",
    programs=(sys.executable,),
    package="nvme-cli",
    port=lambda settings: settings.drive_exporter_port,
    arguments=_drive_exporter,
    ready_path="/",
    impact="no health, wear and write amplification of NVMe drives",
    obstacle=_no_drives_to_ask,
)
ALERTMANAGER = Component(
    name="alertmanager",
    programs=("prometheus-alertmanager", "alertmanager"),
    package="prometheus-alertmanager",
    port=lambda settings: settings.alertmanager_port,
    arguments=_alertmanager,
    ready_path="/-/ready",
    impact="no alerts",
    obstacle=_not_installed,
)
PROMETHEUS = Component(
    name="prometheus",
    programs=("prometheus",),
    package="prometheus",
    port=lambda settings: settings.prometheus_port,
    arguments=_prometheus,
    ready_path="/-/ready",
    impact="no series, no rules and no alerts",
    obstacle=_not_installed,
)
#: In the order in which they are started; Prometheus' configuration names the others.
COMPONENTS = (NODE_EXPORTER, EBPF_EXPORTER, DRIVE_EXPORTER, ALERTMANAGER, PROMETHEUS)
#: Exporters by the job under which Prometheus scrapes them.
EXPORTERS = {"node": NODE_EXPORTER, "ebpf": EBPF_EXPORTER, "drive": DRIVE_EXPORTER}
