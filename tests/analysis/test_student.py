"""Quantiles of Student's t, against the table of Abramowitz and Stegun (26.10)."""

import pytest

from cliffwatch.analysis.student import student_quantile


@pytest.mark.parametrize(
    ("freedom", "within", "quantile"),
    [
        (1, 0.95, 12.706),
        (2, 0.95, 4.303),
        (3, 0.95, 3.182),
        (4, 0.95, 2.776),
        (9, 0.95, 2.262),
        (30, 0.95, 2.042),
        (120, 0.95, 1.980),
        (1, 0.5, 1.0),
        (5, 0.99, 4.032),
    ],
)
def test_a_quantile_is_that_of_the_table(freedom: int, within: float, quantile: float) -> None:
    assert student_quantile(within, freedom) == pytest.approx(quantile, abs=0.0005)
