"""What is lost or wrong after kill -9 of service, worker or engine, and after power cuts, at random moments."""

import random
import shutil
import signal
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.figures import Figure
from testkit.power_cuts import MAKE, cut_disk
from testkit.service import Service
from testkit.worker_runs import events
from testkit.written_disk import cut_again_and_again

from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import JournalReader, files

KILLS = 200
POWER_CUTS = 25
WINDOW_SECONDS = 0.2
SEED = 20_260_101


def lines_of(directory: Path) -> list[bytes]:
    """Complete lines of the windows file: the committed windows."""
    path = directory / files.WINDOWS
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def start_run(service: Service, name: str) -> Path:
    body = {
        "workload": {
            "version": 1,
            "name": "kills",
            "engine": "synthetic",
            "window": "200ms",
            "phases": {"soak": "1h"},
            "engine_restarts": 100,
            "load": {"operations_per_second": 1000},
        },
        "target": {"kind": "synthetic", "name": name},
    }
    answer = service.client.put(f"/api/v1/runs/{name}", json=body)
    answer.raise_for_status()
    return Path(answer.json()["directory"])


def kill(victim: str, service: Service, directory: Path) -> None:
    if victim == "service":
        service.kill()
        service.start()
        return
    heartbeat = Heartbeat.read(directory)
    process = None if heartbeat is None else heartbeat.worker if victim == "worker" else heartbeat.engine
    if process is not None:
        process.send(signal.SIGKILL)


def count_faults(directory: Path, service: Service, name: str, seen: set[bytes]) -> dict[str, int]:
    reader = JournalReader(directory)
    windows = list(reader.windows())
    kept = set(lines_of(directory))
    overlaps = sum(b.start < a.end - 1e-6 for a, b in pairwise(windows))
    misnumbered = sum(window.seq != index for index, window in enumerate(windows))
    resource: dict[str, Any] = service.client.get(f"/api/v1/runs/{name}").json()
    return {
        "windows lost": len(seen - kept),
        "windows twice": overlaps + misnumbered,
        "wrong states": int(resource["state"] != "finished" or resource["verdict"] != "stopped"),
        "reports missing": int(not (directory / files.REPORT_HTML).exists()),
        "damaged lines": len(reader.faults),
    }


def figures() -> list[Figure]:
    return [*after_kills(), *after_power_cuts()]


def after_power_cuts() -> list[Figure]:
    """Promises broken by a worker and a service on a real file system whose drive loses what was not flushed."""
    found = []
    for file_system in MAKE:
        base = Path(tempfile.mkdtemp(prefix="cliffwatch-bench-"))
        with cut_disk(base, file_system) as disk:
            promises, why = cut_again_and_again(disk, range(POWER_CUTS))
        shutil.rmtree(base)
        print(f"# {POWER_CUTS} power cuts under {file_system}, {len(promises)} promises: {why or 'all kept'}")
        found.append(Figure(f"{POWER_CUTS} power cuts, {file_system}: promises broken", int(why is not None), "", 0))
    return found


def after_kills() -> list[Figure]:
    chance = random.Random(SEED)
    base = Path(tempfile.mkdtemp(prefix="cliffwatch-bench-"))
    faults: dict[str, int] = {}
    longest_gap = 0.0
    with Service(base / "state") as service:
        directory = start_run(service, "kills")
        seen: set[bytes] = set()
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.5, 3.0))
            seen |= set(lines_of(directory))
            kill(chance.choice(["service", "worker", "engine"]), service, directory)
        time.sleep(5)
        service.client.post("/api/v1/runs/kills/stop", json={"force": False}).raise_for_status()
        service.wait_for("kills", "finished")
        faults = count_faults(directory, service, "kills", seen)
        longest_gap = max((e.detail["seconds"] for e in events(directory) if e.type == "gap"), default=0.0)
    shutil.rmtree(base)
    print(f"# {KILLS} kills, seed {SEED}; longest gap {longest_gap:.1f} s")
    return [Figure(f"{KILLS} kills: {name}", count, "", 0) for name, count in faults.items()]
