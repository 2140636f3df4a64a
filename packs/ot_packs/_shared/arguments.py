"""Checks what a program gives to a tool: a pack in a worker gets it as it is written."""

from __future__ import annotations

from collections.abc import Sequence


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
        raise ValueError(f"{name} holds an unpaired surrogate") from None
    return value


def check_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """Return *value* if it is one of *choices*.

    Raises:
        ValueError: It is not.
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, got {value!r:.100}")
    return value
