"""A histogram of times: buckets that grow by a fifth, from a tenth of a millisecond on."""

from __future__ import annotations

import math
from collections.abc import Mapping

FIRST_MS = 0.1
STEPS = 4
"""Buckets to a doubling: an estimate is off by at most a fifth, and mostly by far less."""
LAST = 96
"""The bucket of everything above twenty-six minutes."""


def bucket_of(ms: float) -> int:
    """Return the bucket that holds *ms*."""
    return min(LAST, math.ceil(math.log2(ms / FIRST_MS) * STEPS)) if ms > FIRST_MS else 0


def upper_edge(bucket: int) -> float:
    """Return the most milliseconds that *bucket* holds."""
    return FIRST_MS * 2 ** (bucket / STEPS)


def percentile(counts: Mapping[int, int], share: float) -> float:
    """Return the estimated time below which *share* of all counted times lie; 0 when there are none."""
    below, wanted = 0, share * sum(counts.values())
    for bucket in sorted(counts):
        here = counts[bucket]
        if here and below + here >= wanted:
            return upper_edge(bucket) * 2 ** ((wanted - below - here) / here / STEPS)
        below += here
    return 0.0
