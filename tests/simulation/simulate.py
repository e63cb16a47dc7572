"""A seed: what goes wrong, when, and whether all promises hold. `python -m tests.simulation.simulate FIRST COUNT`."""

import errno
import gc
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from tests.simulation.machine import CHANGING, RUNS, Machine, database_template

#: Until then things go wrong, in seconds; then the runs have so long to come to their end.
CALM_AFTER, PATIENCE = 60.0, 6000.0
#: How often something goes wrong, on average.
STRIKE_SECONDS = 4.0
#: How often it is checked whether all runs are over.
LOOK_SECONDS = 3.0
#: Of each call that changes the disk, how often it is the last one of its process, or the last before a power cut.
KILLED_IN_CALL, CUT_IN_CALL = 0.006, 0.003
TORN_WRITES = 0.02
SEEDS_WITHOUT_CLOSING = 20


class Broken(AssertionError):
    """A promise that a seed broke, with what came before."""


def simulate(seed: int, place: Path, template: Path) -> list[str]:
    """What happened. Raises Broken."""
    machine = Machine(seed, place)
    try:
        with machine.on(template):
            _run(machine)
    except (AssertionError, ValueError, OSError) as error:
        history = "\n".join(machine.world.history)
        raise Broken(f"seed {seed}: {error!r}\n{history}") from error
    return machine.world.history


def _run(machine: Machine) -> None:
    world = machine.world
    calm_at = world.now + CALM_AFTER
    over_at = calm_at + PATIENCE
    world.torn_writes = TORN_WRITES
    world.refuse = lambda name: _refuse(machine, name, calm_at)
    # Some seeds are quiet for long, others never.
    pause = STRIKE_SECONDS * world.random.choice((0.5, 1, 3))
    next_strike, looked_at = world.now, world.now
    while world.now < over_at:
        machine.supervise()
        if machine.power_fails:
            machine.cut_power()
            _check(machine)
        if not world.step(min(next_strike, over_at, world.now + 2.0)) and world.now >= next_strike:
            _strike(machine, calm_at)
            next_strike = over_at if world.now >= calm_at else world.now + world.random.expovariate(1 / pause)
        if world.now - looked_at >= LOOK_SECONDS:
            looked_at = world.now
            if machine.accepted == set(RUNS) and _is_over(machine):
                break
    _check(machine)
    for run_id in RUNS:
        _require(machine.promises.unfinished(run_id))


def _refuse(machine: Machine, name: str, calm_at: float) -> None:
    world = machine.world
    process = world.current()
    if process is not None and name in CHANGING and world.now < calm_at:
        fate = world.random.random()
        if fate < KILLED_IN_CALL:
            world.note(f"{process.name} is killed at {name}")
            world.end(process, -9)
        elif fate < KILLED_IN_CALL + CUT_IN_CALL:
            world.note(f"{process.name} is at {name}")
            machine.power_fails = True
            world.sleep(0.0)
    machine.refuse(name)


def _strike(machine: Machine, calm_at: float) -> None:
    """Something goes wrong, or, from then on, nothing does any more."""
    if machine.world.now < calm_at:
        machine.world.random.choice(STRIKES)(machine)
    else:
        machine.world.note("from here on all is well")
        machine.disk_error, machine.is_database_away = None, False
        machine.world.torn_writes = 0.0
    _check(machine)


def _check(machine: Machine) -> None:
    for run_id in machine.accepted:
        _require(machine.promises.broken(run_id))
    service = machine.service
    fell = service is not None and (service.exit_status or 0) > 0
    _require(f"the service fell: {service.said}" if fell and service is not None else None)


def _require(broken: str | None) -> None:
    assert broken is None, broken


def _is_over(machine: Machine) -> bool:
    return all(machine.promises.unfinished(run_id) is None for run_id in RUNS)


def _kill(machine: Machine) -> None:
    living = [process for process in machine.world.processes if process.is_alive]
    kinds = sorted({process.name for process in living})
    if kinds:
        victim = machine.world.named(machine.world.random.choice(kinds))[0]
        machine.world.note(f"{victim.name} is killed")
        machine.world.end(victim, -9)


def _interrupt(machine: Machine) -> None:
    for process in machine.world.processes:
        if process.is_alive and process.name.startswith("worker"):
            machine.world.note(f"{process.name} gets SIGTERM")
            machine.world.signal(process, 15)


def _freeze(machine: Machine) -> None:
    victims = [process for process in machine.world.processes if process.is_alive and process.name != "engine"]
    if victims:
        victim = machine.world.random.choice(victims)
        seconds = machine.world.random.choice((1.0, 4.0, 20.0))
        machine.world.note(f"{victim.name} is frozen for {seconds:g} s")
        victim.frozen_until = machine.world.now + seconds


def _step_clock(machine: Machine) -> None:
    seconds = machine.world.random.choice((-3600.0, -30.0, -1.0, 1.0, 30.0, 3600.0))
    machine.world.note(f"the wall clock is set by {seconds:+g} s")
    machine.world.wall_offset += seconds


def _spoil_disk(machine: Machine) -> None:
    machine.disk_error = machine.world.random.choice((errno.ENOSPC, errno.EIO, None, None))
    machine.world.note(f"the disk answers {machine.disk_error}")


def _take_database(machine: Machine) -> None:
    machine.is_database_away = not machine.is_database_away
    machine.world.note(f"the database is {'away' if machine.is_database_away else 'back'}")


def _stop(machine: Machine) -> None:
    if machine.accepted:
        run_id = machine.world.random.choice(sorted(machine.accepted))
        machine.ask_to_stop(run_id, machine.world.random.random() < 0.3)


STRIKES: tuple[Callable[[Machine], None], ...] = (
    _kill,
    _kill,
    _kill,
    _interrupt,
    _freeze,
    _step_clock,
    _spoil_disk,
    _spoil_disk,
    _take_database,
    _stop,
    Machine.cut_power,
)


def simulate_all(seeds: Iterable[int], count: Callable[[int, list[str]], None] = lambda seed, history: None) -> None:
    """`count` gets what happened. Raises Broken at the first seed that breaks a promise."""
    base = Path(tempfile.mkdtemp(prefix="cliffwatch-simulation-", dir="/dev/shm"))
    logging.disable()
    try:
        template = database_template(base)
        for seed in seeds:
            place = base / str(seed)
            count(seed, simulate(seed, place, template))
            shutil.rmtree(place)
            if seed % SEEDS_WITHOUT_CLOSING == 0:
                _close_files_below(base)
    finally:
        logging.disable(logging.NOTSET)
        _close_files_below(base)
        shutil.rmtree(base, ignore_errors=True)


def _close_files_below(base: Path) -> None:
    """What a process has open until it ends, the processes of a world leave to this one."""
    gc.collect()
    for entry in list(Path("/proc/self/fd").iterdir()):
        with suppress(OSError):
            if entry.readlink().is_relative_to(base):
                os.close(int(entry.name))


if __name__ == "__main__":
    first, number = map(int, sys.argv[1:])
    begun = time.monotonic()
    simulate_all(range(first, first + number))
    print(f"{number} seeds from {first} on in {time.monotonic() - begun:.0f} s: nothing lost")
