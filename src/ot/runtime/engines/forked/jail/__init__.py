"""What runs inside the exact engine's jail: standard library, ``ot_sdk`` and ``given_time`` only.

The zygote imports its modules without their hooks for forks, which every child would run first thing.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def without_fork_hooks() -> Generator[None]:
    """Let modules that are imported meanwhile do nothing when this process forks.

    Their hooks renew locks that other threads may hold, and seed what is random: a zygote has one thread, each child
    seeds by itself, and a jailed child cannot fork. Running them wrote to 130 pages of every child.
    """
    registers, os.register_at_fork = os.register_at_fork, _register_nothing
    try:
        yield
    finally:
        os.register_at_fork = registers


def _register_nothing(**hooks: object) -> None:
    pass
