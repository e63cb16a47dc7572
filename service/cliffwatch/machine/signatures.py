"""Signatures on a block device (file system, RAID, partition table), read with wipefs and blkid without writing."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

#: A drive that does not complete a few reads within this time is unfit for a test.
TIMEOUT_SECONDS = 60.0
#: Exit status of blkid(8) when it found nothing.
_BLKID_NOTHING = 2


class SignaturesUnreadable(Exception):
    """Signatures on the device cannot be determined; the message says why."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature on a block device. `kind` is libblkid's name (`ext4`, `gpt`, `LVM2_member`), `usage` its class
    (`filesystem`, `raid`, `crypto`, `partition-table`, `other`)."""

    kind: str
    usage: str


def default_search_path() -> str:
    """PATH and the directories of system programs, which a service's PATH may lack."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def read_signatures(node: Path, search_path: str | None = None) -> tuple[Signature, ...]:
    """All signatures on the device, each kind once. Raises SignaturesUnreadable.

    wipefs lists every magic string. blkid weighs them, and its results are added to those of wipefs.
    """
    where = default_search_path() if search_path is None else search_path
    listing = _output(where, "wipefs", ["--no-act", "--json", "--output", "TYPE,USAGE", str(node)], {0})
    try:
        # Older versions print nothing at all for a device without signatures.
        rows = json.loads(listing or '{"signatures": []}')["signatures"]
        found = dict.fromkeys(Signature(row["type"] or "unknown", row["usage"] or "other") for row in rows)
    except (ValueError, KeyError, TypeError) as error:
        raise SignaturesUnreadable(f"wipefs printed what cannot be understood: {error!r}") from error
    probed = _output(where, "blkid", ["--probe", "--output", "export", str(node)], {0, _BLKID_NOTHING})
    values = dict(line.split("=", 1) for line in probed.split("\n") if "=" in line)
    if "PTTYPE" in values:
        found |= dict.fromkeys([Signature(values["PTTYPE"], "partition-table")])
    if "TYPE" in values:
        found |= dict.fromkeys([Signature(values["TYPE"], values.get("USAGE", "other"))])
    return tuple(found)


def _output(search_path: str, program: str, arguments: list[str], statuses: set[int]) -> str:
    path = shutil.which(program, path=search_path)
    if path is None:
        raise SignaturesUnreadable(f"{program} is not installed; install util-linux")
    environment = {"PATH": search_path, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            [path, *arguments], env=environment, capture_output=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SignaturesUnreadable(f"{program} failed: {error}") from error
    if done.returncode not in statuses:
        said = done.stderr.decode(errors="replace").strip() or "no message"
        raise SignaturesUnreadable(f"{program} ended with status {done.returncode}: {said}")
    # A label may contain any bytes.
    return done.stdout.decode(errors="replace")
