"""Plan of simulations: every parameter varied by itself, each time over all unpublished ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.labs.what_if.parameters import PARAMETERS, Parameter, Value
from cliffwatch.labs.what_if.profile import Profile

#: Time of one processor for a page that the host writes, cleaning and timing included, as measured on streams.
SECONDS_PER_PAGE = 80e-9
#: Memory of a simulation for each byte of the drive that it simulates, at pages of 16 KiB.
MEMORY_PER_DRIVE_BYTE = 0.6e-3
#: Without a scale asked for, the drive is made so much smaller that the answer comes within about this time …
PATIENCE_SECONDS = 60.0
#: … but not so small that fewer superblocks than this are left: they keep their size, and few of them are coarse.
SUPERBLOCKS_AT_LEAST = 96
MOST_SIMULATIONS = 20_000


@dataclass(frozen=True, slots=True)
class Simulation:
    """One call of the simulator: a value of each parameter, and where its random numbers come from."""

    values: tuple[tuple[str, Value], ...]
    seed: int

    @property
    def flags(self) -> list[str]:
        return [*(PARAMETERS[name].flag(value) for name, value in self.values), f"--seed={self.seed}"]


@dataclass(frozen=True, slots=True)
class Case:
    """A row of the answer: `parameter` at `value`, all else as the profile says, over all seeds and unknown values.

    `is_as_described` where that is the profile's own value. The first case of a plan has no parameter: nothing is
    changed. `is_asked`: the user named this value, so that it has to be answered.
    """

    parameter: Parameter | None
    value: Value | None
    is_as_described: bool
    is_asked: bool
    simulations: tuple[Simulation, ...]


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """`unknown` are the values that every band covers, by parameter. `seconds` is about what it takes."""

    profile: Profile
    cases: tuple[Case, ...]
    unknown: Mapping[str, tuple[Value, ...]]
    seeds: tuple[int, ...]
    scale: int
    jobs: int
    seconds: float

    @property
    def simulations(self) -> list[Simulation]:
        """All simulations that are needed, each once."""
        return list(dict.fromkeys(simulation for case in self.cases for simulation in case.simulations))

    @property
    def asked(self) -> set[Simulation]:
        """Simulations without which there is no answer."""
        return {simulation for case in self.cases if case.is_asked for simulation in case.simulations}

    @property
    def memory_bytes(self) -> float:
        """Memory of the simulations that run at a time."""
        return self.jobs * self.profile.capacity_bytes / self.scale * MEMORY_PER_DRIVE_BYTE


def make_plan(
    profile: Profile, given: Mapping[str, tuple[Value, ...]], *, seeds: int, scale: int | None, jobs: int
) -> SimulationPlan:
    """The plan for a profile.

    `given` are the values asked for, by parameter. What one can change is varied only where values are given, or all
    of it where none are. What is not published varies always, also where a profile says a value: give one to hold it.
    Raises Problem(bad_request) that names the parameter.
    """
    parameters = profile.parameters()
    for name in given:
        if PARAMETERS[name] not in parameters:
            raise _refusal(name, "only the workload `streams` has it, and the profile's workload is another")
    base = {parameter.name: profile.value(parameter) for parameter in parameters}
    # An unpublished parameter that was set for all simulations is known to the user.
    given = {item.name: (base[item.name],) for item in parameters if item.is_unknown and item.name in profile.extra} | {
        **given
    }
    unknown = {item.name: given.get(item.name, item.values) for item in parameters if item.is_unknown}
    asked = [item for item in parameters if not item.is_unknown and item.name in given]
    changeable = asked or [item for item in parameters if not item.is_unknown]
    numbers = tuple(range(1, seeds + 1))
    cases = [Case(None, None, True, True, _simulations(base, unknown, {}, numbers))]
    for parameter in [*changeable, *(PARAMETERS[name] for name in unknown)]:
        values = given.get(parameter.name, parameter.values_around(base[parameter.name]))
        if not parameter.is_unknown:
            # The row that nothing is changed in is what the others are compared with.
            values = tuple(sorted({*values, base[parameter.name]}))
        for value in values:
            simulations = _simulations(base, unknown, {parameter.name: value}, numbers)
            is_asked = value in given.get(parameter.name, ())
            cases.append(Case(parameter, value, value == base[parameter.name], is_asked, simulations))
    count = len({simulation for case in cases for simulation in case.simulations})
    if count > MOST_SIMULATIONS:
        raise _refusal("seeds", f"that makes {count} simulations, and {MOST_SIMULATIONS} are the most; ask for less")
    scale = _scale(profile, count, jobs) if scale is None else scale
    return SimulationPlan(profile, tuple(cases), unknown, numbers, scale, jobs, _seconds(profile, count, jobs, scale))


def _simulations(
    base: Mapping[str, Value],
    unknown: Mapping[str, tuple[Value, ...]],
    changed: Mapping[str, Value],
    seeds: Sequence[int],
) -> tuple[Simulation, ...]:
    free = [name for name in unknown if name not in changed]
    return tuple(
        Simulation(tuple({**base, **dict(zip(free, values, strict=True)), **changed}.items()), seed)
        for values in product(*(unknown[name] for name in free))
        for seed in seeds
    )


def _seconds(profile: Profile, count: int, jobs: int, scale: int) -> float:
    return ceil(count / jobs) * profile.host_pages / scale * SECONDS_PER_PAGE


def _scale(profile: Profile, count: int, jobs: int) -> int:
    """The smallest power of two that keeps the patience, if the drive stays large enough for it."""
    largest = (profile.superblocks or SUPERBLOCKS_AT_LEAST) / SUPERBLOCKS_AT_LEAST
    scale = 1
    while scale * 2 <= largest and _seconds(profile, count, jobs, scale) > PATIENCE_SECONDS:
        scale *= 2
    return scale


def _refusal(field: str, message: str) -> Problem:
    return Problem(Code.BAD_REQUEST, "this cannot be simulated", [FieldFault(field, message)])
