"""YAML between people and programs: written as one would write it, and told in one line why it cannot be read."""

from typing import Any

import yaml


def why_unreadable(error: OSError | UnicodeDecodeError | yaml.YAMLError) -> str:
    """What is wrong, and where in the file, counted as editors count; the caller names the file."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, yaml.MarkedYAMLError) and error.problem and error.problem_mark:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return " ".join(str(error).split())


class _Readable(yaml.SafeDumper):
    """Writes text of several lines, such as a fio job, line by line, as one would write it to edit it."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Readable.add_representer(str, _text)


def readable_yaml(document: dict[str, Any]) -> str:
    """The document in its own order; it reads back as it was."""
    return yaml.dump(document, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=120)
