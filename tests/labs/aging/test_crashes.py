"""kill -9 of any part at any moment: everything that is left is found and removed, and what is wanted stays."""

import os
import signal
from pathlib import Path

import pytest
from tests.labs.aging.machine import CLOCK, SMALL, State

from cliffwatch.labs.aging.description import FileSystem
from cliffwatch.labs.aging.lifecycle import AttachRequest, clean

pytestmark = pytest.mark.alone(why="drives that other tests have killed are taken down, too, and named")
#: What `attach` does, one after the other, by the names that it calls; it is killed right after, or right before.
STEPS = ("serve", "attach_loop", "make_file_system", "mount", "look")


def kill_attaching(state: State, moment: str, step: str) -> None:
    """Have a process attach a new drive, and be killed right before or right after a step."""
    code = f"""
original = lifecycle.{step}
def killed(*arguments, **named):
    if {moment!r} == "after":
        original(*arguments, **named)
    os.kill(os.getpid(), signal.SIGKILL)
lifecycle.{step} = killed
attach(STATE, "one", SystemClock(), AttachRequest(SMALL))
"""
    process = state.script(code)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("step", STEPS[:-1])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_that_attaches_may_be_killed_at_any_step(state: State, moment: str, step: str) -> None:
    kill_attaching(state, moment, step)
    assert clean(state.directory, CLOCK) == ["removed the drive one"]
    assert state.remains() == []
    assert list((state.directory / "drives").iterdir()) == []


@pytest.mark.parametrize("step", STEPS[:-1])
def test_an_interrupted_attach_can_be_repeated_and_detached(state: State, step: str) -> None:
    kill_attaching(state, "after", step)
    drive = state.attach()
    assert drive.mount_point is not None
    (drive.mount_point / "file").write_text("whole")
    state.detach()
    assert state.remains() == []


def test_a_drive_whose_process_was_killed_is_taken_down_even_in_use(state: State) -> None:
    drive = state.attach(AttachRequest(SMALL))
    assert drive.mount_point is not None
    with (drive.mount_point / "open").open("wb") as file:
        file.write(b"x" * 1000)
        file.flush()
        state.kill_server()
        assert clean(state.directory, CLOCK) == ["detached the drive one"]
        # The kernel keeps what is open until it is closed, out of sight.
        assert [each for each in state.remains() if each != drive.device] == []
    again = state.attach()
    assert again.mount_point is not None
    (again.mount_point / "file").write_text("whole")


def test_a_drive_whose_process_was_killed_can_be_detached_and_attached(state: State) -> None:
    state.attach(AttachRequest(SMALL))
    state.kill_server()
    state.detach()
    assert state.remains() == []
    state.attach()
    state.kill_server()
    assert state.attach().url is not None


def test_a_drive_goes_when_the_process_that_it_was_for_has_gone(state: State) -> None:
    code = """
attach(STATE, "one", SystemClock(), AttachRequest(SMALL), keeper=ProcessIdentity.of(os.getpid()))
print("attached", flush=True)
sys.stdin.read()
"""
    keeper = state.script(code)
    assert keeper.stdout is not None
    assert keeper.stdout.readline() == "attached\n"
    assert clean(state.directory, CLOCK) == []
    assert state.drive().url is not None
    keeper.kill()
    keeper.communicate()
    assert state.drive().is_abandoned
    assert clean(state.directory, CLOCK) == ["removed the drive one"]
    assert state.remains() == []


def test_the_dead_drive_of_another_state_directory_is_taken_down_too(state: State, tmp_path: Path) -> None:
    other = State(tmp_path / "other").make()
    drive = other.attach(AttachRequest(SMALL, FileSystem.NONE))
    living = state.attach(AttachRequest(SMALL))
    other.kill_server()
    done = clean(state.directory, CLOCK)
    assert done == [f"detached /dev/{drive.device}", f"unmounted {other.place().flash}"]
    assert other.remains() == []
    assert state.drive() == living
    other.close()


def test_a_drive_that_is_being_attached_is_let_alone(state: State) -> None:
    code = """
def slow(*arguments):
    print("waiting", flush=True)
    sys.stdin.read()
lifecycle.make_file_system = slow
attach(STATE, "one", SystemClock(), AttachRequest(SMALL, FileSystem.XFS))
"""
    process = state.script("from cliffwatch.labs.aging.description import FileSystem\n" + code)
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    assert clean(state.directory, CLOCK) == []
    refused = state.command("drive", "attach", "one")
    assert refused.returncode == 2
    assert "another command is attaching or detaching the drive one" in refused.stderr
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert clean(state.directory, CLOCK) == ["removed the drive one"]
