"""The examples for CI: their scripts are executed as the runners would, against a real service."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from testkit.checkout import ROOT
from tests.cli.junit_cases import parsed
from tests.cli.machine import Machine

EXAMPLES = ROOT / "deploy" / "ci"


def read(name: str) -> dict[Any, Any]:
    document: dict[Any, Any] = yaml.safe_load((EXAMPLES / name).read_text())
    return document


def github() -> tuple[list[str], list[str]]:
    """Scripts of the workflow: those that may fail the job, and those that always run."""
    steps = [step for step in read("github-workflow.yaml")["jobs"]["soak"]["steps"] if "run" in step]
    return [step["run"] for step in steps if "if" not in step], [step["run"] for step in steps if "if" in step]


def gitlab() -> tuple[list[str], list[str]]:
    job = read("gitlab-job.yaml")["soak"]
    return job["script"], job["after_script"]


@pytest.mark.parametrize(("load", "status"), [("time: virtual", 0), ("time: virtual, cliff_after: 15m", 1)])
@pytest.mark.parametrize("example", [github, gitlab])
def test_the_verdict_is_the_job_s_and_the_files_are_there(
    machine: Machine, tmp_path: Path, example: Any, load: str, status: int
) -> None:
    Path(machine.workload("soak", load=load)).rename(tmp_path / "soak.yaml")
    variables = {
        "RUN": f"ci-{example.__name__}-{status}",
        "TARGET": "synthetic:ci",
        "SOAK_TARGET": "synthetic:ci",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "soak.md"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }

    def executed(script: str) -> int:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CLIFFWATCH_")}
        command = ["bash", "-euo", "pipefail", "-c", script]
        return subprocess.run(
            command, cwd=tmp_path, env=environment | machine.variables | variables, check=False, capture_output=True
        ).returncode

    scripts, always = example()
    assert [executed(script) for script in scripts] == [status]
    assert [executed(script) for script in always] == [0] * len(always)
    suite = parsed((tmp_path / "soak.xml").read_bytes())
    assert bool(list(suite.iter("failure"))) == bool(status)
    assert (tmp_path / "soak.md").read_text().startswith(f"### {'▲ degraded' if status else '✓ pass'}: soak on ")
    assert "<!doctype html>" in (tmp_path / "report.html").read_text().lower()


def test_both_examples_keep_the_same_files() -> None:
    upload = read("github-workflow.yaml")["jobs"]["soak"]["steps"][-1]
    assert upload["with"]["path"].split() == ["soak.xml", "report.html"]
    artifacts = read("gitlab-job.yaml")["soak"]["artifacts"]
    assert (artifacts["paths"], artifacts["reports"]["junit"]) == (["soak.md", "report.html"], "soak.xml")
