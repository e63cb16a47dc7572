"""Read OpenMessaging Benchmark files: YAML mappings, and Java properties inside a driver file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cliffwatch.base.documents import read_yaml, why_unreadable
from cliffwatch.base.errors import Code, FieldFault, Problem

#: Largest accepted number of anything: bytes, minutes, topics. A larger one is a typing error, unfit to compute with.
_LARGEST = 1e15
#: Warning for an unknown key.
UNKNOWN = (
    "it is not known here what this does, so it is not done; see whether the benchmark that the file is for measures "
    "something else with it, and take it out"
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SEPARATOR = re.compile(r"(?<!\\)(?:\s*[=:]\s*|\s+)")


@dataclass(slots=True)
class Remarks:
    """Remarks on imported keys: `warnings` are on keys that change what is measured, `notes` on the others."""

    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def warn(self, key: str, words: str) -> None:
        self.warnings.append(f"{key}: {words}")

    def note(self, key: str, words: str) -> None:
        self.notes.append(f"{key}: {words}")


class Keys:
    """Keys of a file. Reading a key marks it as known; `rest` gives those never read, which are unknown."""

    def __init__(self, content: dict[str, Any], where: str) -> None:
        self._content = content
        self._taken: set[str] = set()
        self.where = where

    def take(self, key: str, default: Any = None) -> Any:
        self._taken.add(key)
        value = self._content.get(key)
        return default if value is None else value

    def __contains__(self, key: str) -> bool:
        return self._content.get(key) is not None

    def number(self, key: str, default: float, minimum: float = 0) -> float:
        """Read a number of at least `minimum`. Raises Problem(bad_request) that names the key."""
        value = self.take(key, default)
        if isinstance(value, list):
            words = "a list: this is a template of the benchmark's generator; give one of the workloads that it makes"
            raise wrong(f"{self.where}.{key}", words)
        try:
            number = float(str(value))
        except ValueError:
            number = float("nan")
        if not minimum <= number <= _LARGEST:
            words = f"{str(value)[:80]!r} is not a number of at least {minimum:g} and at most {_LARGEST:g}; correct it"
            raise wrong(f"{self.where}.{key}", words)
        return number

    def whole(self, key: str, default: int, minimum: int = 0) -> int:
        return int(self.number(key, default, minimum))

    def names(self, key: str) -> list[str]:
        """Read a list of strings; empty if the key is missing. Raises Problem(bad_request) that names the key."""
        value = self.take(key, [])
        if not isinstance(value, list):
            raise wrong(
                f"{self.where}.{key}", f"{str(value)[:80]!r} is not a list; write one name on each line after -"
            )
        return [str(each) for each in value]

    def flag(self, key: str, default: bool = False) -> bool:
        return str(self.take(key, default)).strip().lower() in {"true", "yes", "1"}

    def rest(self) -> Iterator[str]:
        """Keys that were not read, in the file's order."""
        return (key for key in self._content if key not in self._taken)


def wrong(field_name: str, words: str) -> Problem:
    return Problem(Code.BAD_REQUEST, "the file cannot be taken over", [FieldFault(field_name, words)])


def read_mapping(path: Path, what: str) -> dict[str, Any]:
    """Read a file that holds a YAML mapping. Raises Problem(bad_request)."""
    try:
        # The benchmark accepts duplicate keys, and so does this.
        content = read_yaml(path, unique_keys=False)
    except (OSError, UnicodeDecodeError) as error:
        raise wrong(what, f"{path} cannot be read: {why_unreadable(error)}; correct the path") from error
    except yaml.YAMLError as error:
        raise wrong(what, f"{path} is not YAML: {why_unreadable(error)}") from error
    if not isinstance(content, dict):
        raise wrong(what, f"{path} does not hold a YAML mapping; give the benchmark's own {what} file")
    return {str(key): value for key, value in content.items()}


def properties_of(text: Any) -> dict[str, str]:
    """Parse Java properties (java.util.Properties.load): comments, `=`, `:` or space as separator, `\\` at the end to
    continue a line."""
    if isinstance(text, dict):
        return {str(key): str(value) for key, value in text.items()}
    found: dict[str, str] = {}
    for line in _logical_lines(str(text or "")):
        key, *value = _SEPARATOR.split(line, maxsplit=1)
        found[_unescaped(key)] = _unescaped(value[0]) if value else ""
    return found


def _logical_lines(text: str) -> Iterator[str]:
    going_on = ""
    for raw in text.splitlines():
        line = going_on + raw.lstrip()
        if not going_on and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            going_on = line[:-1]
            continue
        going_on = ""
        yield line
    if going_on:
        yield going_on


def _unescaped(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        body = match[1]
        return _character(int(body[1:], 16)) if len(body) == 5 else _ESCAPED.get(body, body)

    return _ESCAPE.sub(replace, text)


def _character(number: int) -> str:
    """Character of a code point; a surrogate or NUL is replaced, since it can be neither stored nor printed."""
    return "\N{REPLACEMENT CHARACTER}" if 0xD800 <= number <= 0xDFFF or not number else chr(number)
