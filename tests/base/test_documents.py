"""YAML that users name: what cannot be read is said in their words, and no more of it is read than a document has."""

from pathlib import Path

import pytest
import yaml

from cliffwatch.base.documents import load_yaml, read_yaml, why_unreadable


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("? [a]\n: 1\n", "line 1, column 3: a mapping or a list cannot be a key"),
        ("version: !x 1\n", "line 1, column 10: the tag !x has no meaning here; remove it"),
        ("version: !!python/name:os.system 1\n", "the tag python/name:os.system has no meaning here; remove it"),
        ('a: !!binary "abc"\n', "line 1, column 4: it is no base64; write it as text"),
        (f"a: {'9' * 5000}\n", "a value cannot be read: a number of thousands of digits"),
        ("a: !!timestamp xx\n", "line 1, column 4: 'xx' is no timestamp"),
        ("a: 2026-02-30\n", "line 1, column 4: '2026-02-30' is no timestamp"),
        ("a: !!bool xx\n", "line 1, column 4: 'xx' is no bool"),
        ('a: !!int ""\n', "line 1, column 4: '' is no int"),
        ("a: !!int xx\n", "line 1, column 4: 'xx' is no int"),
        ('a: !!float ""\n', "line 1, column 4: '' is no float"),
        ("a: !!omap [1]\n", "line 1, column 12: expected a mapping of length 1"),
        ("a: !!set [[1]]\n", "line 1, column 4: expected a mapping node, but found sequence"),
        ("a: !!map x\n", "line 1, column 4: expected a mapping node, but found scalar"),
        ("<<: x\n", "expected a mapping or list of mappings for merging, but found scalar"),
        ("a: 1\na: 2\n", "line 2, column 1: the key 'a' is there twice; remove one"),
    ],
)
def test_unreadable_yaml_is_refused_with_a_plain_message(text: str, words: str) -> None:
    with pytest.raises(yaml.YAMLError) as refused:
        load_yaml(text)
    assert words in why_unreadable(refused.value)


def test_no_more_is_read_than_a_document_may_have() -> None:
    with pytest.raises(yaml.YAMLError, match="it has more than 262144 bytes"):
        read_yaml(Path("/dev/zero"))
