"""A world that stands still: the clock shows one moment, and what is random is the same each time."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from unittest import mock

NOW = 1_767_268_800.0
"""Noon of the first day of 2026, in UTC."""


@contextmanager
def frozen(whose: str = "writer") -> Generator[None]:
    """Let the block see one moment, and the same random bytes as every other such block of *whose* process."""
    numbers = count()

    def bytes_like_random(size: int) -> bytes:
        return hashlib.shake_256(f"{whose} {next(numbers)}".encode()).digest(size)

    with (
        mock.patch("time.time", lambda: NOW),
        mock.patch("time.time_ns", lambda: int(NOW) * 10**9),
        mock.patch("os.urandom", bytes_like_random),
        mock.patch("random._urandom", bytes_like_random),
    ):
        yield
