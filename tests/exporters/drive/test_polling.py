"""Drives that hang, fail, lie, come back, come and go."""

import subprocess
import time
from pathlib import Path

import pytest
from cliffwatch_drive_exporter.commands import Commands, DriveError, Reason
from cliffwatch_drive_exporter.controllers import find_controllers
from cliffwatch_drive_exporter.poll import Drives, PolledDrive
from testkit.ports import free_port
from tests.exporters.drive.exporter import NVME, PATIENCE_SECONDS, Machine, command, running

from cliffwatch.base.clock import SystemClock, VirtualClock

#: Of a drive that hangs; every other one answers at once, also on a busy machine.
SHORT_SECONDS = 1.0


def label(number: int, serial: str) -> str:
    return f'{{device="nvme{number}n1",serial="{serial}"}}'


def is_alive(pid: str) -> bool:
    """A zombie is not: who takes it in is the machine's affair."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def commands_of(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setenv("DRIVES", str(machine.answers))
    return Commands("/dev/nvme0", str(NVME), PATIENCE_SECONDS)


def drive_of(machine: Machine, commands: Commands) -> PolledDrive:
    """The machine's first drive, asked when the test says so."""
    return PolledDrive(find_controllers(machine.sys)[0], commands, VirtualClock(1_790_000_000.0))


def test_a_drive_that_hangs_delays_neither_the_scrape_nor_the_others(machine: Machine) -> None:
    (machine.add(0, "HANGS", "ocp") / "hangs").touch()
    machine.add(1, "WELL", "ocp")
    with running(machine, f"--poll.timeout-seconds={SHORT_SECONDS}") as exporter:
        found = exporter.wait(
            lambda found: f"cliffwatch_drive_temperature_celsius{label(1, 'WELL')}" in found, "the other drive"
        )
        assert f"cliffwatch_drive_temperature_celsius{label(0, 'HANGS')}" not in found
        timeouts = 'cliffwatch_drive_poll_errors_total{device="nvme0n1",reason="timeout",serial="HANGS"}'
        found = exporter.wait(lambda found: found[timeouts] >= 1, "the error")
        assert found[f"cliffwatch_drive_up{label(0, 'HANGS')}"] == 0
        assert found[f"cliffwatch_drive_up{label(1, 'WELL')}"] == 1
        sleepers = (machine.answers / "nvme0" / "sleepers").read_text().split()
        assert sleepers
        assert not [pid for pid in sleepers if is_alive(pid)], "what the command began goes with it"


def test_nvme_cli_3_is_asked_by_its_own_names(machine: Machine) -> None:
    answers = machine.add(0, "THREE", "ocp")
    (machine.answers / "version").write_text("nvme version 3.0 (git 3.0)\nlibnvme version 3.0 (git 3.0)\n")
    (answers / "smart-log.json").rename(answers / "log-smart.json")
    with running(machine) as exporter:
        exporter.wait(lambda found: found.get(f"cliffwatch_drive_up{label(0, 'THREE')}"), "an answer")
        assert exporter.samples()[f"cliffwatch_drive_media_counter_available{label(0, 'THREE')}"] == 1
    assert machine.asked(0)[:3] == ["log-smart", "id-ctrl", "ocp-smart-add-log"]


def test_output_that_is_no_log_is_reported_with_the_version_of_nvme_cli(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine.add(0, "ODD") / "says").write_text("Smart Log for NVME device:nvme0\n  temperature : 41\n")
    (machine.answers / "version").write_text("nvme version 1.16\n")
    with pytest.raises(DriveError, match=r"nvme-cli 1\.16's output .* it printed Smart Log for NVME device") as refusal:
        commands_of(machine, monkeypatch).ask("smart-log")
    assert refusal.value.reason is Reason.OUTPUT


def test_however_often_it_is_scraped_a_drive_is_asked_every_ten_seconds_at_most(machine: Machine) -> None:
    machine.add(0, "ONCE", "cloud")
    polls = f"cliffwatch_drive_polls_total{label(0, 'ONCE')}"
    began = time.monotonic()
    with running(machine) as exporter:
        exporter.wait(lambda found: found.get(polls), "an answer")
        for _ in range(30):
            exporter.samples()
        found = exporter.samples()
        assert found[polls] <= 1 + (time.monotonic() - began) // 10
        assert machine.asked(0).count("smart-log") == found[polls]


def test_a_drive_has_no_reading_after_a_failed_poll(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = machine.add(0, "FAILS", "ocp")
    drive = drive_of(machine, commands_of(machine, monkeypatch))
    drive.poll()
    assert drive.status.reading is not None
    (answers / "smart-log.json").rename(answers / "kept")
    drive.poll()
    assert drive.status.reading is None
    assert drive.status.errors == {Reason.TIMEOUT: 0, Reason.COMMAND: 1, Reason.OUTPUT: 0}
    assert drive.status.read_at == 1_790_000_000.0, "when it last answered is known"
    (answers / "kept").rename(answers / "smart-log.json")
    drive.poll()
    assert drive.status.reading is not None
    assert drive.status.polls == 3


@pytest.mark.parametrize("said", ["", "{", "[]", '{"message": "no such device"}'])
def test_an_answer_that_is_none_is_an_error(machine: Machine, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    (machine.add(0, "LIES", "ocp") / "says").write_text(said)
    drive = drive_of(machine, commands_of(machine, monkeypatch))
    drive.poll()
    assert drive.status.reading is None
    assert drive.status.errors[Reason.OUTPUT] == 1


def test_media_bytes_come_from_one_log_for_ever(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs count differently: a change between them would look like terabytes written at once."""
    answers = machine.add(0, "KEEPS", "fdp")
    drive = drive_of(machine, commands_of(machine, monkeypatch))
    drive.poll()
    before = drive.status.reading
    assert before is not None
    assert before.media_source == "fdp"
    (answers / "fdp-stats.json").rename(answers / "kept")
    drive.poll()
    without = drive.status.reading
    assert without is not None
    assert (without.media, without.media_available) == (None, True)
    assert without.health == before.health
    assert drive.status.errors[Reason.COMMAND] == 1
    (answers / "kept").rename(answers / "fdp-stats.json")
    drive.poll()
    assert drive.status.reading == before


def test_an_error_that_lasts_is_logged_once_and_again_after_it_was_over(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers = machine.add(0, "LASTS", "fdp")
    drive = drive_of(machine, commands_of(machine, monkeypatch))
    drive.poll()
    assert caplog.messages == []
    for _ in range(2):
        (answers / "fdp-stats.json").rename(answers / "kept")
        for _ in range(3):
            drive.poll()
        (answers / "kept").rename(answers / "fdp-stats.json")
        drive.poll()
    first, again = caplog.messages
    assert first == again
    assert first.startswith("nvme0n1: ")


def test_a_log_that_is_late_is_not_taken_for_missing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = machine.add(0, "LATE", "ocp")
    (answers / "hangs").write_text("ocp-smart-add-log\n")
    commands = commands_of(machine, monkeypatch)
    drive = drive_of(machine, commands)
    commands.timeout_seconds = SHORT_SECONDS
    while drive.status.reading is None:
        # A busy machine may be late with the SMART log too.
        drive.poll()
    reading = drive.status.reading
    assert reading is not None
    assert (reading.media_available, reading.media_source) == (None, None), "not known is not none"
    assert reading.health.host_written_bytes is not None
    (answers / "hangs").unlink()
    commands.timeout_seconds = PATIENCE_SECONDS
    drive.poll()
    assert drive.status.reading is not None
    assert drive.status.reading.media_source == "ocp"


def test_while_a_command_cannot_be_killed_no_other_is_begun(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes pile up otherwise, one for each poll. What waits in the kernel for a drive cannot be had on demand."""
    machine.add(0, "STUCK", "cloud")
    commands = commands_of(machine, monkeypatch)
    with subprocess.Popen(["sleep", "600"], text=True) as waiting:
        commands._stuck = waiting
        with pytest.raises(DriveError) as raised:
            commands.ask("smart-log")
        assert raised.value.reason is Reason.TIMEOUT
        assert machine.asked(0) == []
        waiting.kill()
        waiting.wait()
    assert commands.ask("smart-log")["avail_spare"] == 100


def test_a_program_that_is_not_there_is_an_error_of_the_command(machine: Machine) -> None:
    with pytest.raises(DriveError) as raised:
        Commands("/dev/nvme0", "/no/such/nvme").ask("smart-log")
    assert raised.value.reason is Reason.COMMAND


def test_drives_come_and_go(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIVES", str(machine.answers))
    drives = Drives(SystemClock(), sys=machine.sys, program=str(NVME))
    try:
        drives.look()
        assert drives.statuses() == []
        machine.add(0, "STAYS", "cloud")
        machine.add(1, "GOES", "cloud")
        drives.look()
        assert [status.controller.serial for status in drives.statuses()] == ["STAYS", "GOES"]
        machine.remove(1)
        drives.look()
        assert [status.controller.serial for status in drives.statuses()] == ["STAYS"]
    finally:
        drives.end()


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--web.listen-address=0.0.0.0:9895", "write 127.0.0.1:9895"),
        ("--web.listen-address=127.0.0.1", "write 127.0.0.1:9895"),
        ("--web.listen-address=127.0.0.1:99999", "write 127.0.0.1:9895"),
        ("--poll.interval-seconds=5", "write 10 or more"),
        ("--poll.timeout-seconds=forever", "write 0.1 to 60"),
    ],
)
def test_a_flag_that_cannot_be_is_refused_by_name(machine: Machine, flag: str, words: str) -> None:
    done = subprocess.run([*command(machine, free_port()), flag], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"argument {flag.split('=')[0]}" in done.stderr
    assert words in done.stderr


def test_a_port_that_is_taken_is_named(machine: Machine) -> None:
    with running(machine) as exporter:
        port = int(exporter.url.rpartition(":")[2])
        done = subprocess.run(command(machine, port), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"--web.listen-address: 127.0.0.1:{port} cannot be listened on" in done.stderr
