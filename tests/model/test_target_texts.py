"""Several targets as one text, as the index has them."""

import pytest

from cliffwatch.base.errors import Problem
from cliffwatch.model.target import SyntheticTarget, parse_targets, targets_text

ONE, TWO = SyntheticTarget(name="one"), SyntheticTarget(name="two")


@pytest.mark.parametrize("targets", [(ONE,), (ONE, TWO)])
def test_targets_written_as_text_are_read_back(targets: tuple[SyntheticTarget, ...]) -> None:
    assert parse_targets(targets_text(targets)) == targets


@pytest.mark.parametrize("text", ["", "[", "[]", "[1]", '[["directory:/a"]]', '["nothing"]', '{"a": 1}', "[" * 10_000])
def test_text_that_holds_no_valid_targets_is_refused(text: str) -> None:
    with pytest.raises(Problem):
        parse_targets(text)
