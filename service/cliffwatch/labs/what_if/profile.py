"""The drive and the workload to simulate: a profile of the simulator, shipped with the program or the user's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cliffwatch.base.documents import why_unreadable
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.resources import PROFILES_DIRECTORY
from cliffwatch.base.units import parse_duration, parse_size
from cliffwatch.labs.what_if.parameters import PARAMETERS, Parameter, Value

#: File name suffix of a shipped profile.
_SUFFIX = ".yaml"
_STREAMS = "streams"
#: Defaults of the simulator, for settings that a profile does not have.
_PAGE_BYTES = 16384
_FILLS = 12.0
_SMALL_DRIVE_BYTES = 4096 * 256 * _PAGE_BYTES
_PAGES_OF_A_SUPERBLOCK = 16_384


@dataclass(frozen=True, slots=True)
class Profile:
    """A drive and a workload. `settings` are those of the file, overridden by `extra`, named as the simulator's flags.

    `shipped` is the profile's name if it is shipped with this project and `extra` is empty: only then does a published
    report on its subject apply to this simulation.
    """

    name: str
    path: Path
    settings: Mapping[str, Any]
    extra: Mapping[str, str]
    shipped: str | None

    @property
    def is_of_streams(self) -> bool:
        return self.settings.get("workload") == _STREAMS

    def parameters(self) -> list[Parameter]:
        """Parameters that the profile's workload has."""
        return [item for item in PARAMETERS.values() if self.is_of_streams or not item.of_streams]

    def value(self, parameter: Parameter) -> Value:
        """Value of a parameter: the profile's, else the simulator's default. Raises Problem(bad_request)."""
        written = self.settings.get(parameter.name)
        return parameter.default if written is None else parameter.parse(written)

    @property
    def capacity_bytes(self) -> float:
        """Capacity of the drive; the simulator refuses an impossible one."""
        written = self.settings.get("capacity")
        return _SMALL_DRIVE_BYTES if written is None else self._size("capacity", written)

    @property
    def superblocks(self) -> float | None:
        """Number of the drive's superblocks; None if the profile has no `capacity`, but `blocks` or neither."""
        if "capacity" not in self.settings:
            return None
        page_bytes = self._size("page-size", self.settings.get("page-size", _PAGE_BYTES))
        return self.capacity_bytes / page_bytes / float(self.settings.get("pages-per-block", _PAGES_OF_A_SUPERBLOCK))

    @property
    def rate_bytes_per_second(self) -> float | None:
        return self._size("rate", self.settings["rate"]) if "rate" in self.settings else None

    @property
    def horizon_seconds(self) -> float | None:
        """Duration of the run; None if it ends after a number of drive fills (`fills`) instead."""
        written = self.settings.get("duration")
        if written is None:
            return None
        try:
            # The simulator writes minutes as `min`.
            return float(written) if _is_number(written) else parse_duration(str(written).replace("min", "m"))
        except ValueError as error:
            raise Problem(Code.BAD_REQUEST, "this cannot be simulated", [FieldFault("duration", str(error))]) from error

    @property
    def host_pages(self) -> float:
        """Approximate number of pages that the host writes."""
        rate, seconds = self.rate_bytes_per_second, self.horizon_seconds
        if rate is not None and seconds is not None:
            return rate * seconds / _PAGE_BYTES
        return float(self.settings.get("fills", _FILLS)) * self.capacity_bytes / _PAGE_BYTES

    def _size(self, name: str, written: object) -> float:
        try:
            return float(str(written)) if _is_number(written) else parse_size(str(written).removesuffix("/s"))
        except ValueError as error:
            raise Problem(Code.BAD_REQUEST, "this cannot be simulated", [FieldFault(name, str(error))]) from error


def shipped_profiles(directory: Path = PROFILES_DIRECTORY) -> list[str]:
    """Names of the profiles that are shipped with the program."""
    return sorted(path.stem for path in directory.glob(f"*{_SUFFIX}"))


def read_profile(name_or_path: str, extra: Mapping[str, str], directory: Path = PROFILES_DIRECTORY) -> Profile:
    """Read a shipped profile by its name, or a file; `extra` settings override it. Raises Problem(bad_request)."""
    by_name = directory / f"{name_or_path}{_SUFFIX}"
    is_shipped = "/" not in name_or_path and by_name.is_file()
    path = (by_name if is_shipped else Path(name_or_path)).absolute()
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(shipped_profiles(directory)) or "none"
        reason = why_unreadable(error)
        message = f"{name_or_path} cannot be read: {reason}; name a file, or a built-in profile: {known}"
        raise _refusal("profile", message) from error
    except yaml.YAMLError as error:
        raise _refusal("profile", f"{name_or_path} is not YAML: {why_unreadable(error)}") from error
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise _refusal("profile", f"{name_or_path} is not a list of settings; write `name: value` on each line")
    settings = {str(key): value for key, value in document.items()} | dict(extra)
    profile = Profile(name_or_path, path, settings, dict(extra), name_or_path if is_shipped and not extra else None)
    if settings.get("workload") == "trace" and "trace" not in settings:
        raise _refusal("trace", "the workload is a trace and none is named; write trace: FILE")
    return profile


def _refusal(field: str, message: str) -> Problem:
    return Problem(Code.BAD_REQUEST, "this cannot be simulated", [FieldFault(field, message)])


def _is_number(written: object) -> bool:
    try:
        float(str(written))
    except ValueError:
        return False
    return not isinstance(written, bool)
