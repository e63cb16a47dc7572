"""Translate pydantic's validation errors into messages that name the input and what would be right."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from cliffwatch.base.errors import FieldFault
from cliffwatch.base.suggestion import did_you_mean
from cliffwatch.base.units import format_duration, format_size, parse_duration

#: Names of workloads, and ids of runs: they are also names of directories.
NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,62}$"
#: Ids that the service gives to tokens and schedules.
SHORT_ID_PATTERN = r"^[0-9a-f]{8,16}$"
#: Pydantic's error types for bounds: in words, and the key of the bound in the error's context.
_BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}

#: Pydantic's error types for values of the wrong type, with what is expected in words.
_FORMS = {
    "bool_type": "yes or no",
    "bool_parsing": "yes or no",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "string_type": "text; put it in quotes",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "list_type": "a list",
    "tuple_type": "a list",
}
_TYPED_LIMIT = 80
#: Beginning of a message by which a model that compares several of its keys names the faulty one.
_OF_KEY = re.compile(r"`(?P<key>[a-z_.]+)`: (?P<rest>.*)", re.DOTALL)
#: Fields whose value is one of several kinds.
_WITH_KINDS = frozenset({"target", "trigger"})
#: Maximum number of faults that are listed one by one.
FAULTS_LIMIT = 20


def faults_of(error: ValidationError, prefix: str = "", model: type[BaseModel] | None = None) -> list[FieldFault]:
    """Pydantic's validation errors as faults with dotted field names.

    With `model`, a message on an unknown key suggests known ones.
    """
    faults = []
    for item in islice(error.errors(include_url=False, include_context=True), FAULTS_LIMIT):
        place = field_of([*([prefix] if prefix else []), *(str(part) for part in item["loc"])])
        message = message_of(item)
        if item["type"] == "extra_forbidden" and model is not None:
            models = _models_at(model, item["loc"][:-1])
            message = unknown_key(str(item["loc"][-1]), _keys_of(models), _nested_keys(models))
        if (of_key := _OF_KEY.match(message)) is not None:
            place, message = ".".join([*([place] if place else []), of_key["key"]]), of_key["rest"]
        faults.append(FieldFault(place or "document", message))
    return with_rest(faults, error.error_count())


def field_of(place: Sequence[str]) -> str:
    """Dotted name of a field as in the document, from the location in pydantic's error.

    Parts that pydantic adds are removed: the kind of a target or trigger, and `[key]` for an invalid key.
    """
    is_kind = [False, *(before in _WITH_KINDS for before in place[:-1])]
    return ".".join(part for part, left_out in zip(place, is_kind, strict=False) if not left_out and part != "[key]")


def with_rest(faults: list[FieldFault], count: int) -> list[FieldFault]:
    """The first FAULTS_LIMIT faults and, if `count` is larger, one more that says how many were left out."""
    shown = faults[:FAULTS_LIMIT]
    return shown if count <= len(shown) else [*shown, FieldFault("more", f"and {count - len(shown)} more faults")]


def unknown_key(key: str, known: Sequence[str], nested: Sequence[str] = ()) -> str:
    """Error message for an unknown key: suggests the known key that was probably meant, or lists all known keys.

    `nested` are the dotted names of keys one level below.
    """
    hint = did_you_mean(key, known, nested)
    return f"unknown key{hint}" if hint else f"unknown key; known keys: {', '.join(known)}"


def _models_at(model: type[BaseModel], place: Sequence[int | str]) -> list[type[BaseModel]]:
    """Pydantic models of which the value at `place` in a document may be, such as one for each kind of target."""
    models = [model]
    for part in place:
        # A part that is no field is an index in a list, or the tag of one of several models.
        inner = [field for each in models for name, field in each.model_fields.items() if part in (name, field.alias)]
        models = [found for field in inner for found in _models_in(field.annotation)] or models
    return models


def _keys_of(models: Iterable[type[BaseModel]]) -> list[str]:
    return [field.alias or name for each in models for name, field in each.model_fields.items()]


def _nested_keys(models: Iterable[type[BaseModel]]) -> list[str]:
    """Dotted names of the keys one level below: an unknown key is often a known one in the wrong place."""
    return [
        f"{field.alias or name}.{key}"
        for each in models
        for name, field in each.model_fields.items()
        for key in _keys_of(_models_in(field.annotation))
    ]


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in _models_in(part)]


def message_of(item: Mapping[str, Any]) -> str:
    """Message for one of pydantic's validation errors, with what would be right."""
    kind = str(item["type"])
    if kind == "extra_forbidden":
        return "unknown key; remove it or correct its spelling"
    if kind == "missing":
        return "missing; it has no default"
    if kind in ("literal_error", "enum"):
        expected = [option.strip("'") for option in re.split(r", | or ", str(item["ctx"]["expected"]))]
        return f"{_typed(item)} is not one of {', '.join(expected)}{did_you_mean(str(item['input']), expected)}"
    if kind == "string_type" and isinstance(item["input"], Mapping):
        return f"{_typed(item)} is a mapping; write it as one line of text"
    if kind in _FORMS:
        return f"{_typed(item)} is not {_FORMS[kind]}"
    if kind == "string_pattern_mismatch" and item["ctx"]["pattern"] == NAME_PATTERN:
        name = "up to 63 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit"
        return f"{_typed(item)} is not a name; use {name}"
    if kind == "string_pattern_mismatch" and item["ctx"]["pattern"] == "^/":
        return f"{_typed(item)} is not an absolute path; begin it with /"
    if kind == "string_pattern_mismatch" and item["ctx"]["pattern"] == SHORT_ID_PATTERN:
        return f"{_typed(item)} is not an id; ids look like 43f4dc31"
    if kind == "string_pattern_mismatch":
        return (
            f"{_typed(item)} has characters that it may not have; it is to match the pattern {item['ctx']['pattern']}"
        )
    if kind in _BOUNDS and isinstance(item["input"], str | int | float):
        word, name = _BOUNDS[kind]
        bound = item["ctx"][name]
        written = _as_written(item["input"], bound) if isinstance(item["input"], str) else f"{bound:,}"
        return f"{item['input']} is out of range; write {word} {written}"
    if kind.startswith(("datetime", "timezone")):
        return f"{_typed(item)} is not a timestamp with a time zone; write one such as 2026-12-24T18:00:00Z"
    return _of_kind_or_length(item) or str(item["msg"]).removeprefix("Value error, ")


def _of_kind_or_length(item: Mapping[str, Any]) -> str | None:
    kind = str(item["type"])
    if kind == "union_tag_not_found":
        return "has no `kind`; write one, which says what it is"
    if kind == "union_tag_invalid":
        expected = [option.strip("'") for option in str(item["ctx"]["expected_tags"]).split(", ")]
        tag = str(item["ctx"]["tag"])
        return f"{tag!r} is not a kind; write one of {', '.join(expected)}{did_you_mean(tag, expected)}"
    if kind in ("string_too_long", "too_long"):
        of_what = "characters" if kind == "string_too_long" else "items"
        return f"is too long; write at most {item['ctx']['max_length']:,} {of_what}"
    if kind in ("string_too_short", "too_short"):
        return "is too short; write at least " + str(item["ctx"]["min_length"])
    return None


def _typed(item: Mapping[str, Any]) -> str:
    """Text of the input value, shortened; null, true and false as JSON and YAML write them."""
    given = item["input"]
    text = json.dumps(given) if given is None or isinstance(given, bool) else repr(given)
    return text if len(text) <= _TYPED_LIMIT else text[: _TYPED_LIMIT - 1] + "…"


def _as_written(given: str, bound: float) -> str:
    """A bound in the same form as the input: seconds as a duration, bytes as a size, a number as it is."""
    for parse, write in ((float, str), (parse_duration, format_duration)):
        with suppress(ValueError):
            parse(given)
            return write(bound)
    return format_size(bound)
