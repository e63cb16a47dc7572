"""Read and write YAML documents: one-line messages for malformed input, output that people can edit."""

import re
from pathlib import Path
from typing import Any

import yaml

from cliffwatch.base.finite_json import DEPTH_LIMIT
from cliffwatch.base.plain_values import plain

#: Maximum length of a document in characters: longer than any workload, also one with a fio job in it.
_TEXT_LIMIT = 64 * 1024
_ALIASES_LIMIT = 20
_TAGS = "tag:yaml.org,2002:"
#: Messages of the YAML library on valid YAML that is not allowed here, and clearer messages with a remedy.
_PLAINER = (
    (re.compile(r"found unhashable key"), "a mapping or a list cannot be a key"),
    (
        re.compile(r"could not determine a constructor for the tag '(?:tag:yaml\.org,2002:)?(.{1,40}).*'", re.DOTALL),
        r"the tag \1 has no meaning here; remove it",
    ),
    (re.compile(r"failed to (?:decode|convert) base64 data.*", re.DOTALL), "it is no base64; write it as text"),
    (re.compile(r"Exceeds the limit \(\d+ digits\).*", re.DOTALL), "a number of thousands of digits"),
)


class _Bounded(yaml.SafeLoader):
    """YAML loader that refuses duplicate keys, deep nesting and many aliases."""

    def __init__(self, text: str, unique_keys: bool) -> None:
        super().__init__(text)
        self._unique_keys = unique_keys
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

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError) as error:
            # The library assumes that a value is of the kind of its tag.
            if str(error).startswith("Exceeds the limit"):
                raise
            value = f"{node.value[:40]!r}" if isinstance(node, yaml.ScalarNode) else "what is here"
            problem = f"{value} is no {node.tag.removeprefix(_TAGS)}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        # A node that is no mapping may have the tag of a mapping.
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen and self._unique_keys:
                    problem = f"the key {key.value[:40]!r} is there twice; remove one"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path, *, unique_keys: bool = True) -> Any:
    """Read a YAML document from a file or pipe that a user names, up to the maximum size of a document.

    Raises OSError, UnicodeDecodeError, and yaml.YAMLError as `load_yaml` does.
    """
    limit_bytes = 4 * _TEXT_LIMIT
    with path.open("rb") as file:
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise yaml.YAMLError(f"it has more than {limit_bytes} bytes; it may have {_TEXT_LIMIT} characters")
    return load_yaml(content.decode("utf-8"), unique_keys=unique_keys)


def load_yaml(text: str, *, unique_keys: bool = True) -> Any:
    """Parse a YAML document. Raises yaml.YAMLError, which `why_unreadable` turns into a one-line message.

    `unique_keys`: a duplicate key in a mapping is refused; otherwise the last one counts.
    """
    if len(text) > _TEXT_LIMIT:
        raise yaml.YAMLError(f"it has {len(text)} characters; it may have {_TEXT_LIMIT}")
    loader = _Bounded(text, unique_keys)
    try:
        return plain(loader.get_single_data())
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        # For example an invalid date, a number of thousands of digits, or a mapping as a key.
        raise yaml.YAMLError(f"a value cannot be read: {_plainly(str(error))[:200]}") from error
    finally:
        loader.dispose()


def why_unreadable(error: OSError | UnicodeDecodeError | yaml.YAMLError) -> str:
    """Reason why a document cannot be read, with line and column as editors count; the caller names the file."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, yaml.MarkedYAMLError) and error.problem and error.problem_mark:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {_plainly(error.problem)}"
    return " ".join(str(error).split())


def _plainly(words: str) -> str:
    for pattern, plain_words in _PLAINER:
        words = pattern.sub(plain_words, words)
    return words


_OTHER_LINE_ENDS = frozenset("\r\x85\u2028\u2029")


class _Readable(yaml.SafeDumper):
    """YAML dumper that writes text of several lines, such as a fio job, as a block that people can edit."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Line ends other than a newline become newlines unless they are escaped.
    style = '"' if _OTHER_LINE_ENDS & set(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Readable.add_representer(str, _text)


def readable_yaml(document: dict[str, Any]) -> str:
    """Write a document as YAML, with its keys in their order; reading it gives the same document."""
    return yaml.dump(document, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=120)
