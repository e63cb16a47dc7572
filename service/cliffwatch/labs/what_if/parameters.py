"""Parameters that a what-if can vary, by the simulator's setting names; parse and format their values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.units import parse_share, parse_size

Value = float | int | bool
_ON, _OFF = ("on", "true", "yes"), ("off", "false", "no")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A setting of the simulator.

    `default` is the simulator's own. `values` are tried unless the user gives others; with `factors`, multiples of the
    profile's value are tried instead. `is_unknown`: the true value is not published, so every answer covers all of its
    values. `of_streams`: only the workload `streams` has this parameter.
    """

    name: str
    title: str
    default: Value
    values: tuple[Value, ...]
    read: Callable[[str], Value]
    show: Callable[[Value], str]
    is_unknown: bool = False
    of_streams: bool = True
    factors: tuple[float, ...] = ()

    def values_around(self, base: Value) -> tuple[Value, ...]:
        """Default values to try, for a profile with the value `base`."""
        if not self.factors:
            return self.values
        return tuple(dict.fromkeys(max(1, round(base * factor)) for factor in self.factors))

    def flag(self, value: Value) -> str:
        """The simulator's flag for a value."""
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return f"--{self.name}={text}"

    def parse(self, text: object) -> Value:
        """Parse a value that a user or a profile gives. Raises Problem(bad_request) that says what would be valid."""
        try:
            return self.read(str(text).strip().lower() if isinstance(text, bool) else str(text).strip())
        except ValueError as error:
            raise _fault(self.name, str(error)) from error

    def parse_list(self, text: str) -> tuple[Value, ...]:
        """Parse values separated by commas, in the order given, each once. Raises Problem(bad_request)."""
        values = tuple(dict.fromkeys(self.parse(part) for part in text.split(",") if part.strip()))
        if not values:
            raise _fault(self.name, f"has no value; write one or more, as in {','.join(map(self.show, self.values))}")
        return values


def _fault(name: str, message: str) -> Problem:
    return Problem(Code.BAD_REQUEST, "this cannot be simulated", [FieldFault(name, message)])


def _share(lowest_excluded: bool = False, highest_included: bool = False) -> Callable[[str], Value]:
    def read(text: str) -> Value:
        try:
            share = parse_share(text)
        except ValueError:
            share = -1.0
        above = share > 0 if lowest_excluded else share >= 0
        below = share <= 1 if highest_included else share < 1
        if not (above and below):
            bounds = f"{'above 0' if lowest_excluded else '0'} to {'1' if highest_included else 'below 1'}"
            raise ValueError(f"{text!r} is not a share from {bounds}; write 0.1 or 10%")
        return share

    return read


def _count(text: str) -> Value:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{text!r} is not a number of streams; write a whole number above 0, such as 288")
    return int(text)


def _size(text: str) -> Value:
    size = int(text) if text.isdecimal() else parse_size(text)
    if size == 0:
        raise ValueError("0 bytes cannot be written; write a size such as 16KiB")
    return size


def _switch(text: str) -> Value:
    if text.lower() in _ON:
        return True
    if text.lower() in _OFF:
        return False
    raise ValueError(f"{text!r} is neither on nor off")


def show_share(value: Value) -> str:
    return f"{round(value * 100, 6):g} %"


def show_size(value: Value) -> str:
    """Format a size in the largest unit that leaves a whole number: 16384 → `16 KiB`."""
    for exponent, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if value >= 1024**exponent and value % 1024**exponent == 0:
            return f"{value // 1024**exponent:g} {unit}"
    return f"{value} B"


def _show_plainly(value: Value) -> str:
    return f"{value:g}"


def _show_switch(value: Value) -> str:
    return "on" if value else "off"


UNPARTITIONED = Parameter("unpartitioned", "Left unpartitioned", 0.0, (0.0, 0.1, 0.2, 0.3), _share(), show_share,
                          of_streams=False)  # fmt: skip
TRIM = Parameter("trim", "TRIM of deleted segments", False, (False, True), _switch, _show_switch)
RETENTION = Parameter("retention", "Share of the volume that is kept", 0.75, (0.5, 0.75, 0.9),
                      _share(lowest_excluded=True, highest_included=True), show_share)  # fmt: skip
STREAMS = Parameter("streams", "Segment files written at a time", 288, (72, 288, 1152), _count, _show_plainly,
                    factors=(0.25, 1, 4))  # fmt: skip
WRITE_SIZE = Parameter("write-size", "Size of one write", 16384, (16384, 1048576), _size, show_size)
OVER_PROVISIONING = Parameter("over-provisioning", "The drive's own over-provisioning", 0.07, (0.07, 0.125, 0.2),
                              _share(), show_share, is_unknown=True, of_streams=False)  # fmt: skip
DISORDER = Parameter("disorder", "Disorder in the reuse of freed space (q)", 0.5, (0.1, 0.3, 1.0),
                     _share(highest_included=True), _show_plainly, is_unknown=True)  # fmt: skip

#: In display order: parameters that a user can change, then those that can only be guessed or measured.
PARAMETERS: Mapping[str, Parameter] = {
    parameter.name: parameter
    for parameter in (UNPARTITIONED, TRIM, RETENTION, STREAMS, WRITE_SIZE, OVER_PROVISIONING, DISORDER)
}
