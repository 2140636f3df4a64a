"""The histogram of times."""

from __future__ import annotations

import random
import statistics
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.stats.schema import LAST_BUCKET, bucket_of, percentile, upper_edge


@given(st.floats(0, 1e6))
def test_a_time_lies_in_its_bucket(ms: float) -> None:
    bucket = bucket_of(ms)
    assert 0 <= bucket <= LAST_BUCKET
    assert ms <= upper_edge(bucket) * 1.000001
    assert bucket == 0 or ms >= upper_edge(bucket - 1) * 0.999999


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_an_estimate_is_within_a_fifth_of_the_truth(share: float) -> None:
    chance = random.Random(3)
    times = [chance.lognormvariate(4, 1.5) for _ in range(5000)]
    truth = statistics.quantiles(times, n=100)[round(share * 100) - 1]
    assert percentile(Counter(map(bucket_of, times)), share) == pytest.approx(truth, rel=0.1)


def test_nothing_measured_is_no_time() -> None:
    assert percentile({}, 0.95) == 0.0
