"""Intervals around figures of few attempts: Wilson's for a share, the bootstrap's for a mean."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

Z = 1.96
"""Standard deviations on both sides that hold 95 %."""
DRAWS = 1000
SEED = 0
"""The same attempts have the same interval."""


def wilson(passed: int, attempts: int) -> tuple[float, float]:
    """Return the 95 % interval of a share; it is not empty for none or all of a few attempts."""
    if not attempts:
        return 0.0, 1.0
    share, squared = passed / attempts, Z * Z / attempts
    middle = (share + squared / 2) / (1 + squared)
    half = Z / (1 + squared) * math.sqrt(share * (1 - share) / attempts + squared / (4 * attempts))
    return max(0.0, middle - half), min(1.0, middle + half)


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of *values*, by drawing from them again and again."""
    draw = random.Random(SEED)
    means = sorted(statistics.fmean(draw.choices(values, k=len(values))) for _ in range(DRAWS))
    return means[round(DRAWS * 0.025)], means[round(DRAWS * 0.975) - 1]
