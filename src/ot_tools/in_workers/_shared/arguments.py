"""Checks what a program gives to a tool: a pack in a worker gets it as it is written."""

from __future__ import annotations

from collections.abc import Sequence, Sized


def check_text(name: str, value: object, most: int, *, blank: bool = False) -> str:
    """Return *value* if it is text of at most *most* characters that says something, or may be *blank*.

    Raises:
        TypeError, ValueError: It is not.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, got {value!r:.100}")
    if not (value if blank else value.strip()):
        raise ValueError(f"{name} must not be empty")
    if len(value) > most:
        raise ValueError(f"{name} has {len(value):,} characters, more than {most:,}: shorten it")
    if "\0" in value:
        raise ValueError(f"{name} must be text without NUL, got {value!r:.100}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} holds half a character (a surrogate)") from None
    return value


def check_number(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return *value* if it is a whole number from *least* to *most*.

    Raises:
        TypeError, ValueError: It is not.
    """
    if type(value) is not int:  # True would pass for 1
        raise TypeError(f"{name} must be an int, got {value!r:.100}")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {f'>= {least}' if most is None else f'{least} to {most:,}'}, got {value}")
    return value


def whole[T: Sized](found: T, limit: int, most: int) -> T:
    """Return *found*, of which there are at most *most* where a program asked for up to *limit*.

    Raises:
        ValueError: It asked for more than *most*, and there may be more.
    """
    if limit > most and len(found) >= most:
        raise ValueError(f"there are {most:,} or more: ask for less, by limit= up to {most:,} or by other arguments")
    return found


def check_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """Return *value* if it is one of *choices*.

    Raises:
        ValueError: It is not.
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, got {value!r:.100}")
    return value
