"""Plan of simulations: every parameter varied by itself, each time over all values of the unpublished parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.labs.what_if.parameters import PARAMETERS, Parameter, Value
from cliffwatch.labs.what_if.profile import Profile

#: CPU time for each page that the host writes, with garbage collection and timing, measured on the workload `streams`.
SECONDS_PER_PAGE = 80e-9
#: Memory of a simulation for each byte of the drive that it simulates, at pages of 16 KiB.
MEMORY_PER_DRIVE_BYTE = 0.6e-3
#: Without a requested scale, the drive is scaled down until the answer takes about this time …
PATIENCE_SECONDS = 60.0
#: … but keeps at least this many superblocks: these are not scaled, and with fewer the model is too coarse.
SUPERBLOCKS_AT_LEAST = 96
MOST_SIMULATIONS = 20_000


@dataclass(frozen=True, slots=True)
class Simulation:
    """One call of the simulator: a value of each parameter, and the seed of its random numbers."""

    values: tuple[tuple[str, Value], ...]
    seed: int

    @property
    def flags(self) -> list[str]:
        return [*(PARAMETERS[name].flag(value) for name, value in self.values), f"--seed={self.seed}"]


@dataclass(frozen=True, slots=True)
class Case:
    """A row of the answer: `parameter` at `value`, else as in the profile, over all seeds and unpublished values.

    `is_as_described`: `value` is the profile's own. The first case of a plan has no parameter: nothing is changed.
    `is_asked`: the user named the value, or this is the first case, so the answer must have it.
    """

    parameter: Parameter | None
    value: Value | None
    is_as_described: bool
    is_asked: bool
    simulations: tuple[Simulation, ...]


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """Plan of a what-if. `unknown` has each unpublished parameter's values; `seconds` is the estimated duration."""

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
        """Simulations of the requested cases, without which there is no answer."""
        return {simulation for case in self.cases if case.is_asked for simulation in case.simulations}

    @property
    def memory_bytes(self) -> float:
        """Memory of all simulations that run at the same time."""
        return self.jobs * self.profile.capacity_bytes / self.scale * MEMORY_PER_DRIVE_BYTE


def make_plan(
    profile: Profile, given: Mapping[str, tuple[Value, ...]], *, seeds: int, scale: int | None, jobs: int
) -> SimulationPlan:
    """Make the plan for a profile.

    `given` are the requested values by parameter. Of the parameters that a user can change, those with given values
    are varied, or all of them if none has any. Unpublished parameters are always varied, even if the profile has a
    value: give one value to hold it. Raises Problem(bad_request) that names the parameter.
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
            # The profile's own value is one of the rows, to compare the others with.
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
    """Smallest power of two to divide the drive's size by so that the plan is estimated to take PATIENCE_SECONDS at
    most; limited so that SUPERBLOCKS_AT_LEAST remain."""
    largest = (profile.superblocks or SUPERBLOCKS_AT_LEAST) / SUPERBLOCKS_AT_LEAST
    scale = 1
    while scale * 2 <= largest and _seconds(profile, count, jobs, scale) > PATIENCE_SECONDS:
        scale *= 2
    return scale


def _refusal(field: str, message: str) -> Problem:
    return Problem(Code.BAD_REQUEST, "this cannot be simulated", [FieldFault(field, message)])
