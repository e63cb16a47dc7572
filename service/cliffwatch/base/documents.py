"""YAML between people and programs: written as one would write it, and one line that says why it cannot be read."""

from typing import Any

import yaml

from cliffwatch.base.finite_json import DEPTH_LIMIT
from cliffwatch.base.plain_values import plain

#: Longer than any workload, also one with a fio job in it.
_TEXT_LIMIT = 64 * 1024
_ALIASES_LIMIT = 20


class _Bounded(yaml.SafeLoader):
    """Refuses what a person would not write: keys that stand twice, and nesting and aliases that only cost time."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._aliases = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._aliases += self.check_event(yaml.AliasEvent)
        self._depth += 1
        mark = self.get_mark()
        if self._depth > DEPTH_LIMIT:
            raise yaml.composer.ComposerError(None, None, f"nested more than {DEPTH_LIMIT} deep", mark)
        if self._aliases > _ALIASES_LIMIT:
            raise yaml.composer.ComposerError(None, None, f"more than {_ALIASES_LIMIT} aliases; write it out", mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    problem = f"the key {key.value[:40]!r} is there twice; remove one"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def load_yaml(text: str) -> Any:
    """The document that a text is. Raises yaml.YAMLError, which `why_unreadable` puts in a line."""
    if len(text) > _TEXT_LIMIT:
        raise yaml.YAMLError(f"it has {len(text)} characters; it may have {_TEXT_LIMIT}")
    loader = _Bounded(text)
    try:
        return plain(loader.get_single_data())
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        # A date that is none, a number of thousands of digits, a mapping that is a key.
        raise yaml.YAMLError(f"a value cannot be read: {str(error)[:200]}") from error
    finally:
        loader.dispose()


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
