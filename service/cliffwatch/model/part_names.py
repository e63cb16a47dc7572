"""Names of a run's parts: given by people, or taken from each part's drive or target."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field

from cliffwatch.model.target import AnyTarget, BrokerTarget, DeviceTarget, DirectoryTarget, PostgresTarget

#: Name of the part of a run that has one target.
ONLY_PART = "local"
_LONGEST = 32
#: In series a part's name stands before a slash, and is followed by dots; words have blanks for underscores.
PART_NAME = rf"[a-z0-9][a-z0-9-]{{0,{_LONGEST - 1}}}"
PartName = Annotated[str, Field(pattern=f"^{PART_NAME}$")]
_OF_PART = re.compile(rf"(?P<part>{PART_NAME})/(?P<name>.+)")
_UNFIT = re.compile(r"[^a-z0-9]+")
_ADDRESS = re.compile(r"[0-9.]+|\[.*")


def of_part(part: str, name: str) -> str:
    """Name of a part's own counter, gauge or latency among those of the run: `nvme3n1/append`."""
    return f"{part}/{name}"


def split_part(name: str) -> tuple[str, str]:
    """The part of a name that `of_part` made, and the part's own name for it; an empty part for any other name."""
    found = _OF_PART.fullmatch(name)
    return ("", name) if found is None else (found["part"], found["name"])


def part_names(
    targets: Sequence[AnyTarget], drives: Sequence[Sequence[str]], given: Sequence[str | None] = ()
) -> tuple[str, ...]:
    """Name of the part of each target, unique in the run: the one that was `given`, or that of the one drive below the
    target (`drives`: kernel names), or one from the target itself. A name that is taken gets a number."""
    found = [name for name in given if name]
    names: list[str] = []
    for index, (target, below) in enumerate(zip(targets, drives, strict=True)):
        wanted = given[index] if index < len(given) else None
        names.append(wanted or _free(below[0] if len(below) == 1 else _own_name(target), [*found, *names]))
    return tuple(names)


def _own_name(target: AnyTarget) -> str:
    match target:
        case DirectoryTarget():
            return PurePosixPath(target.path).name
        case DeviceTarget():
            return PurePosixPath(target.identity).stem
        case BrokerTarget():
            return _host(target.bootstrap_servers[0].rpartition(":")[0], "broker")
        case PostgresTarget():
            return _host(target.database.host, "postgres")
        case _:
            return target.name


def _host(host: str, otherwise: str) -> str:
    return otherwise if _ADDRESS.fullmatch(host) else host.partition(".")[0]


def _free(wanted: str, taken: Sequence[str]) -> str:
    plain = _UNFIT.sub("-", wanted.lower())[:_LONGEST].strip("-") or "part"
    candidates = [plain, *(f"{plain[: _LONGEST - 4]}-{number}" for number in range(2, len(taken) + 3))]
    return next(name for name in candidates if name not in taken and name != ONLY_PART)
