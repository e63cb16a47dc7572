"""Numbers as programs print them in any locale."""

import pytest

from cliffwatch.base.printed_numbers import PrintedNumbers


def parse(*texts: str) -> list[float]:
    return list(PrintedNumbers().parse({str(place): text for place, text in enumerate(texts)}).values())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1000.5", 1000.5),
        ("1000,5", 1000.5),
        ("2,35", 2.35),
        ("0,123", 0.123),
        ("0.123", 0.123),
        ("1000,500", 1000.5),
        ("1,234", 1234.0),
        ("1,234,567", 1234567.0),
        ("1,234.5", 1234.5),
        ("1.234,5", 1234.5),
        ("1.234.567,5", 1234567.5),
        ("1.234", 1.234),
        ("1e5", 1e5),
        (" 7 ", 7.0),
    ],
)
def test_a_number_is_read(text: str, value: float) -> None:
    assert parse(text) == [value]


@pytest.mark.parametrize("text", ["1,23,456", "1,2345,6", "1.2.3", "1,", ",5", "-5", "inf", "1_000", "٣", "five", ""])
def test_text_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse(text)


def test_a_mean_of_nothing_is_left_out() -> None:
    assert parse("nan", "5") == [5.0]


def test_a_single_comma_before_three_digits_is_what_other_numbers_of_the_program_show() -> None:
    assert parse("2,350", "1000,500") == [2.35, 1000.5]
    numbers = PrintedNumbers()
    assert numbers.parse({"p99": "2,350"}) == {"p99": 2350.0}, "nothing shows it yet"
    assert numbers.parse({"p99": "0,990"}) == {"p99": 0.99}
    assert numbers.parse({"p99": "2,350"}) == {"p99": 2.35}
    assert parse("2,350", "1,000,500") == [2350.0, 1000500.0]
