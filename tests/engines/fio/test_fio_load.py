"""The `load` of a fio workload, its presets and the workloads that come with Cliffwatch."""

import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from cliffwatch.base.errors import Problem
from cliffwatch.engines.fio.job import parse_job
from cliffwatch.engines.fio.jobfile import format_job_file
from cliffwatch.engines.fio.load import FioLoad
from cliffwatch.engines.fio.presets import PRESETS
from cliffwatch.engines.registry import load_of
from cliffwatch.model.workload import parse_workload, workload_from

WORKLOADS = {path.name.removesuffix(".yaml"): path for path in (files("cliffwatch") / "workloads").iterdir()}
JOB = "[w]\nrw=write\nsize=64m\ndirect=1\n"


@pytest.mark.parametrize(
    ("load", "field", "message"),
    [
        ({}, "load", "give either `preset` or `job`"),
        ({"preset": "sequential-log", "job": JOB}, "load", "give either `preset` or `job`"),
        ({"preset": "nosuch"}, "load.preset", "there is no preset 'nosuch'; presets: kafka-raid-write"),
        ({"preset": "sequential-log", "size": 5}, "load.size", "has no unit"),
        ({"preset": "sequential-log", "size": "1KiB"}, "load.size", "1KiB is out of range; write at least"),
        ({"preset": "sequential-log", "jobs": 0}, "load.jobs", "0 is out of range; write at least 1"),
        ({"preset": "sequential-log", "bs": "4k"}, "load.bs", "unknown key"),
        ({"job": JOB, "jobs": 3}, "load", "`jobs` goes with a preset"),
        ({"job": JOB + "exec_prerun=id\n"}, "load.job", "[w] exec_prerun: fio would run a program"),
    ],
)
def test_a_load_that_is_wrong_names_the_field_and_the_remedy(load: dict[str, object], field: str, message: str) -> None:
    document = {"version": 1, "name": "x", "engine": "fio", "phases": {"soak": "1h"}, "load": load}
    with pytest.raises(Problem) as refusal:
        load_of(workload_from(document))
    (fault,) = refusal.value.faults
    assert fault.field == field
    assert message in fault.message


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_parses_and_passes_its_own_allow_list(name: str, tmp_path: Path) -> None:
    load = FioLoad.model_validate({"preset": name, "jobs": 2, "size": "64MiB", "rate": "1MiB"})
    job = tmp_path / "job.fio"
    job.write_text(format_job_file(load.sections, None))
    environment = {"PATH": "/usr/bin:/bin", "CLIFFWATCH_RUNTIME": "1000ms"}
    command = ["fio", "--parse-only", str(job)]
    parsed = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (parsed.returncode, parsed.stderr) == (0, "")
    assert all(section.jobs == 2 and section.size_bytes == 64 * 1024**2 for section in load.sections)
    own = "".join(
        f"[{section.name}]\n" + "".join(f"{key}={value}\n" for key, value in section.options.items())
        for section in load.sections
    )
    assert parse_job(own) == load.sections


def test_the_raid_stages_are_24_jobs_of_1_to_16_kibibytes_on_more_than_a_gibibyte_each() -> None:
    stages = {name: FioLoad(preset=name).sections for name in PRESETS if name.startswith("kafka-raid-")}
    assert {name: [section.options["rw"] for section in sections] for name, sections in stages.items()} == {
        "kafka-raid-write": ["write"],
        "kafka-raid-randread": ["randread"],
        "kafka-raid-mixed": ["write", "randread"],
    }
    for section in (section for sections in stages.values() for section in sections):
        assert (section.jobs, section.options["bsrange"], section.direct) == (24, "1k-16k", True)
        assert section.size_bytes > 1024**3


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_that_comes_along_is_valid_and_bears_its_file_s_name(name: str) -> None:
    workload = parse_workload(WORKLOADS[name].read_text())
    assert workload.name == name
    assert workload.description
    load_of(workload)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_a_workload_of_a_day(name: str) -> None:
    workload = parse_workload(WORKLOADS[name].read_text())
    assert workload.load["preset"] == name
    assert workload.phases.soak >= 24 * 3600
    assert load_of(workload).sections == FioLoad(preset=name).sections


def test_the_quick_soak_is_three_minutes_of_modest_bounded_load() -> None:
    workload = parse_workload(WORKLOADS["quick-soak"].read_text())
    assert workload.phases.load_seconds + workload.phases.cool_down <= 180
    sections = load_of(workload).sections
    assert sum(section.size_bytes * section.jobs for section in sections) <= 1024**3
    written = [section.written_bytes_per_second() for section in sections]
    assert all(rate is not None and rate < 8 * 1024**2 for rate in written)
    burst = sections[-1]
    assert workload.phases.load_seconds - burst.delay_seconds <= 45
