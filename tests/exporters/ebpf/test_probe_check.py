"""Where the probe cannot run, one sentence says why, and everything else goes on."""

import os
import re
import subprocess
from pathlib import Path

import yaml
from testkit.checkout import ROOT, STATE
from testkit.probe import PREFIX, SOURCES, Probe

CANNOT_RUN = "The block-layer probe cannot run here: "


def check(*before: str, **environment: str) -> tuple[int, str]:
    """Exit code and standard error of the check, run by the command `before` if there is one."""
    done = subprocess.run(
        [*before, str(SOURCES / "check")],
        env={**os.environ, "STATE": str(STATE), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def assert_one_sentence(said: str) -> None:
    assert said.startswith(CANNOT_RUN)
    assert said.endswith(".\n")
    assert said.count("\n") == 1


def test_the_check_says_nothing_where_the_probe_can_run(built: None) -> None:
    assert check() == (0, "")


def test_a_kernel_without_type_information_is_named(built: None, tmp_path: Path) -> None:
    missing = tmp_path / "vmlinux"
    code, said = check(BTF=str(missing))
    assert code == 3
    assert_one_sentence(said)
    assert str(missing) in said


def test_no_path_to_type_information_is_no_type_information(built: None) -> None:
    code, said = check(BTF="")
    assert code == 3
    assert_one_sentence(said)


def test_type_information_that_is_none_is_refused_with_the_reason(built: None, tmp_path: Path) -> None:
    garbage = tmp_path / "vmlinux"
    garbage.write_text("no types here")
    code, said = check(BTF=str(garbage))
    assert code == 3
    assert_one_sentence(said)


def test_another_user_than_root_is_informed_that_root_is_needed(built: None) -> None:
    code, said = check("unshare", "--user", "--map-user=1000")
    assert code == 3
    assert_one_sentence(said)
    assert "root" in said


def test_a_probe_that_is_not_built_says_how_to_build(tmp_path: Path) -> None:
    code, said = check(STATE=str(tmp_path))
    assert code == 3
    assert_one_sentence(said)
    assert "make watchers" in said


def test_a_built_probe_is_not_built_again(built: None) -> None:
    done = subprocess.run(["make", "-C", str(SOURCES), f"STATE={STATE}", "--question"], check=False)
    assert done.returncode == 0


def test_each_metric_is_exposed_or_configured_and_documented(probe: Probe) -> None:
    configured = {
        metric["name"]
        for metrics in yaml.safe_load((SOURCES / "block.yaml").read_text())["metrics"].values()
        for metric in metrics
    }
    documented = set(re.findall(r"^\| `(\w+)", (ROOT / "docs" / "ebpf.md").read_text(), re.MULTILINE))
    assert configured == documented

    exposed = set(re.findall(rf"^# TYPE {PREFIX}(\w+) ", probe.text(), re.MULTILINE))
    assert exposed <= {name.removeprefix("cliffwatch_block_") for name in configured}
    assert "untracked_requests_total" in exposed
