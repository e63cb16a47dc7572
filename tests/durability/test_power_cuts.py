"""Power is cut at every moment: what was acknowledged is there, and without any one fsync it would not be."""

import re
import shutil
import threading
from pathlib import Path
from random import Random

import pytest
from testkit.checkout import ROOT
from testkit.power import Disk, Site
from tests.durability.scenarios import SCENARIOS, Promises, Scenario

#: Of each moment, and of the last one.
IMAGES, LAST_IMAGES = 3, 30
#: Of an fsync that is forgotten, until that is noticed.
SEEDS = 20
SERVICE = ROOT / "service" / "cliffwatch"
#: Modules that make durable what can be made again.
MADE_AGAIN = {
    # A run that was deleted is there again after a power cut, and can be deleted again.
    "app/library.py",
    "cli/daemon.py",
    "cli/serve.py",
    "cli/units.py",
    "labs/aging/description.py",
    "labs/aging/directories.py",
    # Prometheus still has the past.
    "labs/look_back/journal.py",
    "report/build.py",
    "report/picture/process.py",
    # By `write_json_durably`, whose fsyncs the scenario `document` proves.
    "stack/channels.py",
    "stack/launch.py",
    "stack/processes.py",
    "telemetry/parts.py",
    "coordinator/run.py",
}
NEEDLESS = ("nothing:", "of the run's own nothing:")
BY_NAME = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


def table() -> dict[Site, str]:
    """The table of docs/durability.md: what happens without each fsync."""
    text = (ROOT / "docs" / "durability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\S+\.py)` \| `(\S+)` \| `?([^|`]+?)`? \| (.*) \|$", text, re.MULTILINE)
    return {Site(module, function, synced): without for module, function, synced, without in rows}


def cut(scenario: Scenario, directory: Path, seed: int, forgotten: Site | None = None) -> tuple[set[Site], str | None]:
    """Which fsyncs there were, and what the first image lacked that kept less than was promised."""
    disk, beside, image = directory / "disk", directory / "beside", directory / "image"
    beside.mkdir(parents=True)
    scenario.prepare(disk, beside)
    promises: Promises = []
    broken: list[str] = []

    def moment(running: Disk, images: int = IMAGES) -> None:
        for _ in range(0 if broken else images):
            why = scenario.broken(running.image(image), promises)
            broken.extend([] if why is None else [why])
            shutil.rmtree(image)

    try:
        with Disk(disk, Random(seed), moment, forgotten).watched() as running:
            scenario.act(disk, beside, promises)
            running.pause(lambda: moment(running, LAST_IMAGES))
        return running.sites, next(iter(broken), None)
    finally:
        shutil.rmtree(directory)


@BY_NAME
def test_acknowledged_data_survives_a_power_cut_at_any_moment(scenario: Scenario, tmp_path: Path) -> None:
    for seed in range(5):
        sites, broken = cut(scenario, tmp_path / "try", seed)
        assert broken is None
        assert sites


@pytest.mark.real(why="for each fsync of the table, all scenarios without it")
@pytest.mark.parametrize("site", table(), ids=str)
def test_each_fsync_is_missed_as_the_documentation_says(site: Site, tmp_path: Path) -> None:
    is_needless = table()[site].startswith(NEEDLESS)
    where = [scenario for scenario in SCENARIOS if site in cut(scenario, tmp_path / "try", 0)[0]]
    assert where
    missed = [why for scenario in where if (why := missed_by(scenario, tmp_path / "try", site)) is not None]
    assert bool(missed) is not is_needless, missed


def test_the_documentation_names_no_other(tmp_path: Path) -> None:
    found: set[Site] = set()
    for scenario in SCENARIOS:
        found |= cut(scenario, tmp_path / "try", 0)[0]
    assert found == set(table())


def test_every_module_that_syncs_is_tested_by_power_cuts_or_listed_as_rebuildable() -> None:
    """A module that begins to sync something is proven, or stands in this list."""
    syncing = {
        str(path.relative_to(SERVICE))
        for path in SERVICE.rglob("*.py")
        if re.search(r"\b(fsync|sync_directory|append_durably|write_durably|write_json_durably)\(", path.read_text())
    }
    assert syncing == {site.module for site in table()} | MADE_AGAIN


def missed_by(scenario: Scenario, directory: Path, site: Site) -> str | None:
    """Scenario, seed and what an image lacked without this fsync; None where none lacked anything."""
    for seed in range(SEEDS):
        if (why := cut(scenario, directory, seed, site)[1]) is not None:
            return f"{scenario.name}, seed {seed}: {why}"
    return None


def test_a_disk_watches_its_own_thread_alone(tmp_path: Path) -> None:
    """Services that other tests keep sync files at any time, and a call while another is looked at is not watched."""
    (tmp_path / "disk").mkdir()
    moments: list[Disk] = []
    with Disk(tmp_path / "disk", Random(1), moments.append).watched():
        other = threading.Thread(target=(tmp_path / "other").mkdir)
        other.start()
        other.join()
        assert moments == []
        (tmp_path / "own").mkdir()
    assert len(moments) == 1
