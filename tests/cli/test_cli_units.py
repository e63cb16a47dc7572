"""The systemd unit; tests/install starts it under a systemd."""

import re
from pathlib import Path

import pytest
from tests.cli.machine import Machine

from cliffwatch.stack.systemd import scope_for, unit


def settings_of(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def test_the_unit_starts_this_installation_and_leaves_runs_alone() -> None:
    settings = settings_of(unit(Path("/opt/there/bin/cliffwatch"), None))
    assert settings["ExecStart"] == ["/opt/there/bin/cliffwatch serve"]
    assert settings["ExecStartPost"] == ["/opt/there/bin/cliffwatch up --timeout 60s"]
    assert settings["ExecStop"] == ["/opt/there/bin/cliffwatch down"]
    assert settings["KillMode"] == ["process"]


def test_root_keeps_what_drives_need_and_a_user_keeps_nothing() -> None:
    root, user = (settings_of(unit(Path("/bin/cliffwatch"), name)) for name in (None, "watcher"))
    assert "CAP_SYS_ADMIN" in root["CapabilityBoundingSet"][0].split()
    assert "User" not in root
    assert (user["User"], user["SupplementaryGroups"], user["CapabilityBoundingSet"]) == (["watcher"], ["disk"], [""])


def test_there_is_no_scope_where_systemd_did_not_start_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INVOCATION_ID", raising=False)
    assert scope_for("mine", "1") == []


def test_the_command_writes_the_unit_and_says_what_to_type_next(idle: Machine, tmp_path: Path) -> None:
    done = idle.run("install-units", "--to", str(tmp_path))
    assert done.returncode == 0
    assert "systemctl enable --now cliffwatch" in done.stderr
    assert "bin/cliffwatch serve" in (tmp_path / "cliffwatch.service").read_text()
    refused = idle.run("install-units", "--to", str(tmp_path / "nowhere"))
    assert refused.returncode == 2
    assert "cannot be written: No such file or directory" in refused.stderr
