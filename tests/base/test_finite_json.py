"""JSON from outside costs about as much to read as it is long, whatever is in it."""

import time
import zlib
from collections.abc import Callable

import pytest

from cliffwatch.base.finite_json import NotFiniteError, lenient_json, may_be_unfit, strict_json
from cliffwatch.base.plain_values import read_json


def test_many_keys_are_refused_before_they_are_compared() -> None:
    """To find among so many the one that stands twice took seconds, with all other requests waiting."""
    names = [f'"{number}":0' for number in range(2000)]
    with pytest.raises(ValueError, match="has 2002 keys; it may have 1000"):
        read_json(f'{{{",".join(names)},"twice":0,"twice":1}}'.encode())


def test_a_key_that_stands_twice_among_as_many_as_there_may_be_is_named() -> None:
    names = [f'"{number}":0' for number in range(998)]
    with pytest.raises(ValueError, match="'twice' is there twice"):
        read_json(f'{{{",".join(names)},"twice":0,"twice":1}}'.encode())


@pytest.mark.parametrize(
    ("text", "unfit"),
    [
        ("NaN", 1),
        ("-Infinity", 1),
        ("1e999", 1),
        ("1E+999", 1),
        ("1e-999", 0),
        ("9" * 199 + "1" * 200, 1),
        ("9" * 250 + "e99", 1),
        ('"\\ud800 \\u0000"', 0),
        ("1.5e+12", 0),
        ('"\\u00e9 e99 +000"', 0),
    ],
)
def test_unfit_json_numbers_become_null_and_are_detected_in_the_text(text: str, unfit: int) -> None:
    value, found = lenient_json(text)
    assert found == unfit
    assert (value is None) == bool(unfit)
    assert may_be_unfit(text.encode()) or not unfit


def test_to_see_that_a_text_is_fit_takes_about_as_long_as_to_compress_it() -> None:
    """Runs of digits that are not quite too long took hundreds of times as long."""
    text = ("1" * 199 + ",") * 20_000
    line = f'"{text}"'.encode()

    def seconds(measured: Callable[[], object]) -> float:
        started = time.process_time()
        measured()
        return time.process_time() - started

    looked = min(seconds(lambda: may_be_unfit(line)) for _ in range(3))
    compressed = min(seconds(lambda: zlib.compress(line)) for _ in range(3))
    assert looked < 20 * compressed


@pytest.mark.parametrize("text", ["9" * 5000, '{"a":-' + "9" * 4001 + "}", "1e999", "NaN"])
def test_a_number_that_is_none_is_refused_in_plain_words(text: str) -> None:
    with pytest.raises(NotFiniteError, match=r"is too large|is not a JSON number"):
        strict_json(text)
