"""Intervals around few attempts are wide, and inside what is possible."""

from __future__ import annotations

import pytest
from benchmarks.four_ways.intervals import bootstrap, wilson
from hypothesis import given
from hypothesis import strategies as some


@given(some.integers(1, 1000).flatmap(lambda n: some.tuples(some.integers(0, n), some.just(n))))
def test_a_share_lies_in_its_interval(counted: tuple[int, int]) -> None:
    passed, attempts = counted
    low, high = wilson(passed, attempts)
    assert 0 <= low <= passed / attempts + 1e-9
    assert passed / attempts - 1e-9 <= high <= 1


def test_none_of_ten_may_still_be_a_quarter() -> None:
    # The interval of Wilson's paper for 0 of 10.
    assert wilson(0, 10) == pytest.approx((0, 0.278), abs=0.001)
    assert wilson(5, 10) == pytest.approx((0.237, 0.763), abs=0.001)
    assert wilson(0, 0) == (0, 1)


@given(some.lists(some.floats(0, 1e6), min_size=1, max_size=20))
def test_a_mean_lies_between_the_least_and_the_most(values: list[float]) -> None:
    low, high = bootstrap(values)
    assert min(values) - 1e-6 <= low <= high <= max(values) + 1e-6
    assert bootstrap(values) == (low, high)
