"""A bare Debian root, made by debootstrap, in which tests install packages from this machine's package registries.

Its kernel, devices and network are this machine's; each command has its own processes and mounts, which end with it.
A test's changes go into an overlay on the root that all tests share, and are removed with the test's directory.
"""

import fcntl
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testkit.checkout import CACHE

#: Files that configure this machine's access to package registries; they are copied, so that the root uses the same.
CLIENT_SETTINGS = (
    "etc/apt/apt.conf.d",
    "etc/pip.conf",
    "etc/ssl/certs",
    "etc/resolv.conf",
    "etc/hosts",
    "usr/local/share/ca-certificates",
    "usr/share/ca-certificates",
)
_PREAMBLE = "set -euo pipefail; export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive\n"
_TASK = """
[Service]
Type=oneshot
ExecStart=bash -c '/srv/task >/srv/said 2>&1; echo $$? >/srv/status; systemctl poweroff --no-block'
[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True, slots=True)
class Debian:
    """A root directory as an overlay: `base` is shared and never written; `upper` has the changes of this instance."""

    base: Path
    upper: Path

    def run(
        self, script: str, *, alone: bool = False, reads: Sequence[Path] = (), timeout_seconds: float = 600
    ) -> subprocess.CompletedProcess[str]:
        """Run a script in bash as root, after `set -euo pipefail`; stdout and stderr are both in `stdout`.

        `alone`: with its own loopback as the only network, on which no port is taken. `reads`: directories of this
        machine that are mounted read-only at the same paths.
        """
        prepare = [
            f"mount -t proc proc {self.root}/proc",
            f"mount --rbind /sys {self.root}/sys",
            f"mount --rbind /dev {self.root}/dev",
            f"mount -t tmpfs tmpfs {self.root}/tmp",
            *(f"mkdir -p {self.root}{path} && mount --bind -o ro {path} {self.root}{path}" for path in reads),
            *(["ip link set lo up"] if alone else []),
            f"exec chroot {self.root} bash -c {shlex.quote(_PREAMBLE + script)}",
        ]
        return self._in_namespaces(prepare, ["--pid", "--fork", *(["--net"] if alone else [])], timeout_seconds)

    def boot(
        self, script: str, *, as_machine: bool = False, timeout_seconds: float = 600
    ) -> subprocess.CompletedProcess[str]:
        """Boot the root's own systemd and run the script as `run` does with `alone`; then shut down.

        `as_machine`: with every capability and system call, which a container has not.
        """
        self.write("srv/task", "#!/bin/bash\n" + _PREAMBLE + script, mode=0o755)
        self.write("etc/systemd/system/task.service", _TASK)
        wants = self.upper / "etc/systemd/system/multi-user.target.wants/task.service"
        wants.parent.mkdir(parents=True, exist_ok=True)
        wants.unlink(missing_ok=True)
        wants.symlink_to("../task.service")
        command = f"systemd-nspawn --quiet --directory={self.root} --private-network --register=no --keep-unit --boot"
        more = "--capability=all" if as_machine else ""
        setting = "SYSTEMD_SECCOMP=0" if as_machine else ""
        done = self._in_namespaces([f"exec env {setting} {command} {more}"], [], timeout_seconds)
        said = self.upper / "srv" / "said"
        status = self.upper / "srv" / "status"
        if not status.exists():
            return done
        return subprocess.CompletedProcess(done.args, int(status.read_text()), said.read_text(), "")

    def write(self, name: str, content: str | bytes, mode: int = 0o644) -> None:
        """Write a file; `name` is its path relative to the root."""
        path = self.upper / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(mode)

    @property
    def root(self) -> Path:
        """Mount point of the root; it is mounted only while a command runs, and only that command sees the mount."""
        return self.upper.with_name("root")

    @property
    def mount_command(self) -> str:
        """Shell line that mounts the root; the directories that it needs are made."""
        work = self.upper.with_name("work")
        for directory in (self.upper, work, self.root):
            directory.mkdir(parents=True, exist_ok=True)
        layers = f"lowerdir={self.base},upperdir={self.upper},workdir={work}"
        return f"mount -t overlay overlay -o {layers} {self.root}"

    def _in_namespaces(
        self, script: list[str], namespaces: list[str], timeout_seconds: float
    ) -> subprocess.CompletedProcess[str]:
        lines = ["set -eu", self.mount_command, *script]
        # Unmounts on this machine apply in the namespace too; mounts in the namespace are not seen outside.
        unshare = ["unshare", "--mount", "--propagation=slave", *namespaces]
        if "--fork" in namespaces:
            unshare.append("--kill-child")
        return subprocess.run(
            [*unshare, "sh", "-c", "\n".join(lines)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )


def debian(release: str, directory: Path) -> Debian:
    """A Debian root of this release, bare except for CA certificates; its changes go into `directory`."""
    return Debian(_base(release), directory / "upper")


def _base(release: str) -> Path:
    """Shared root of this release, made once and cached. Raises CalledProcessError when it cannot be made."""
    place = CACHE / f"debian-{release}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            _make_base(release, place)
    return place


def _make_base(release: str, place: Path) -> None:
    making = place.with_suffix(".making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    mirror, *security = _mirrors()
    command = ["debootstrap", "--variant=minbase", "--include=ca-certificates", release, str(making), mirror]
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin"}
    )
    there = [name for name in CLIENT_SETTINGS if Path("/", name).exists()]
    subprocess.run(["cp", "--archive", "--parents", "--remove-destination", *there, making], cwd="/", check=True)
    # As on any machine: some packages, such as a new compiler, come as security updates only.
    with (making / "etc/apt/sources.list").open("a", encoding="utf-8") as sources:
        sources.writelines(f"deb {site} {release}-security main\n" for site in security)
    making.rename(place)


def _mirrors() -> list[str]:
    """URLs of this machine's own package mirror and, after it, of the mirrors of security updates."""
    command = ["apt-get", "indextargets", "--format", "$(RELEASE) $(SITE)", "Created-By: Packages"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    sites = [line.split() for line in lines]
    return [sites[0][1], *sorted({site for release, site in sites if release.endswith("-security")})]
