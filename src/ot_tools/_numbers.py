"""Checks the numbers that a program gives to a tool: programs are not type-checked."""

from __future__ import annotations


def check_number(name: str, value: object, least: int, most: int | None = None) -> None:
    """Return if *value* is a whole number from *least* to *most*.

    Raises:
        TypeError, ValueError: It is not.
    """
    if type(value) is not int:  # True would pass for 1
        raise TypeError(f"{name} must be an int, got {value!r:.100}")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {f'>= {least}' if most is None else f'{least:,} to {most:,}'}, got {value}")
