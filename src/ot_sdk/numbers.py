"""Checks the numbers that a program gives to a tool: programs are not type-checked."""

from __future__ import annotations

from collections.abc import Sized
from typing import TypeVar

T = TypeVar("T", bound=Sized)


def check_number(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return *value* if it is a whole number from *least* to *most*.

    Raises:
        TypeError, ValueError: It is not.
    """
    if type(value) is not int:  # True would pass for 1
        raise TypeError(f"{name} must be an int, got {value!r:.100}")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {f'>= {least}' if most is None else f'{least:,} to {most:,}'}, got {value}")
    return value


def whole(found: T, limit: int, most: int) -> T:  # noqa: UP047 - Python 3.10
    """Return *found*, of which there are at most *most* where a program asked for up to *limit*.

    Raises:
        ValueError: It asked for more than *most*, and there may be more.
    """
    if limit > most and len(found) >= most:
        raise ValueError(f"there are {most:,} or more: ask for less, by limit= up to {most:,} or by other arguments")
    return found
