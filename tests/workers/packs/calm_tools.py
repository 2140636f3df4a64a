"""Tools that behave."""

import asyncio
import os

import ot_sdk


def echo(*, nonce: str) -> str:
    """Return what was given."""
    return nonce


def add(*, first: int, second: int = 1) -> int:
    """Add two numbers."""
    return first + second


async def aecho(*, nonce: str, seconds: float = 0.0) -> str:
    """Return what was given, a little later."""
    await asyncio.sleep(seconds)
    return nonce


def own_pid() -> int:
    """Return the worker's process id."""
    return os.getpid()


def environ() -> dict[str, str]:
    """Return the names and values of the environment."""
    return dict(os.environ)


def steps(*, count: int) -> int:
    """Tell of each step."""
    for number in range(count):
        ot_sdk.progress(number + 1, count, f"step {number + 1}")
    return count
