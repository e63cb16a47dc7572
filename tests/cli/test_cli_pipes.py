"""Output of commands in a pipe: stdout has the result alone, stderr the messages; `run list` fits 100 columns."""

import csv
from pathlib import Path

from tests.cli.machine import Machine

TERMINAL_COLUMNS = 100


def test_the_id_of_a_started_run_is_all_of_stdout(machine: Machine) -> None:
    done = machine.run("run", "start", machine.workload("piped"), "--target", "synthetic:piped")
    assert done.returncode == 0, done.stderr
    run_id = done.stdout.strip()
    assert run_id.startswith("piped-")
    assert f"cliffwatch run watch {run_id}" in done.stderr
    assert machine.run("run", "show", run_id).returncode == 0


def test_a_list_of_runs_fits_a_terminal(machine: Machine) -> None:
    done = machine.run(
        "run", "start", machine.workload("field-report"), "--target", "synthetic:nvme0n1-write", "--wait"
    )
    assert done.returncode == 0, done.stderr
    heading, run = machine.run("run", "list", "--workload", "field-report").stdout.splitlines()
    assert heading.split() == ["RUN", "WORKLOAD", "TARGET", "STATE", "ELAPSED", "LABELS"]
    assert "pass" in run
    assert max(map(len, (heading, run))) <= TERMINAL_COLUMNS


def test_the_sentences_of_an_analysis_are_in_its_output(machine: Machine) -> None:
    table = machine.directory / "soak.csv"
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["elapsed_seconds", "p99"])
        rows.writerows([at * 10, 0.005] for at in range(400))
    done = machine.run("analyze", str(table))
    assert done.stderr == ""
    verdict, reason, *_ = done.stdout.splitlines()
    assert verdict == "verdict: pass"
    assert "how much work was due is unknown" in reason


def test_a_path_is_a_directory_and_a_missing_one_is_offered(machine: Machine) -> None:
    arguments = ("run", "start", machine.workload("placed"), "--dry-run", "--target")
    done = machine.run(*arguments, "./not there")
    assert f"mkdir -p '{machine.directory / 'not there'}'" in done.stderr
    refused = machine.run(*arguments, "/dev/sda")
    assert refused.returncode == 2
    assert "device:SERIAL" in refused.stderr


def test_the_service_of_another_state_directory_is_not_ready_here(machine: Machine, tmp_path: Path) -> None:
    assert machine.run("--state-directory", str(machine.state), "status").returncode == 0
    done = machine.run("--state-directory", str(tmp_path / "other"), "status")
    assert done.returncode == 3
    assert "another state directory" in done.stderr
