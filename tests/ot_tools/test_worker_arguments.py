"""What the packs in workers check of what a program gives."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import ot_tools
from ot_sdk.numbers import check_number


@pytest.fixture
def arguments(monkeypatch: pytest.MonkeyPatch) -> Generator[Any]:
    """The module, which each of these packs has beside its own."""
    monkeypatch.syspath_prepend(Path(ot_tools.__file__).parent / "in_workers" / "_shared")
    yield importlib.import_module("arguments")
    sys.modules.pop("arguments", None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(b"x", TypeError("x must be text, got b'x'"), id="bytes"),
        pytest.param(" ", ValueError("x must not be empty"), id="a blank"),
        pytest.param("x" * 11, ValueError("x has 11 characters, more than 10: shorten it"), id="too long"),
        pytest.param("a\0", ValueError(r"x must be text without NUL, got 'a\x00'"), id="a NUL"),
        pytest.param("\ud800", ValueError("x holds half a character (a surrogate)"), id="half a character"),
    ],
)
def test_what_is_not_a_text_that_says_something_is_refused(arguments: Any, value: object, expected: Exception) -> None:
    with pytest.raises(type(expected)) as refused:
        arguments.check_text("x", value, 10)
    assert str(refused.value) == str(expected)


def test_a_text_may_be_blank_where_that_is_said_but_not_empty(arguments: Any) -> None:
    assert arguments.check_text("x", " ", 10, blank=True) == " "
    with pytest.raises(ValueError, match="x must not be empty"):
        arguments.check_text("x", "", 10, blank=True)


@pytest.mark.parametrize(
    ("value", "most", "expected"),
    [
        pytest.param(True, 10, TypeError("x must be an int, got True"), id="a truth"),
        pytest.param("1", 10, TypeError("x must be an int, got '1'"), id="a text"),
        pytest.param(0, 10_000, ValueError("x must be 1 to 10,000, got 0"), id="too small"),
        pytest.param(11, 10, ValueError("x must be 1 to 10, got 11"), id="too large"),
        pytest.param(0, None, ValueError("x must be >= 1, got 0"), id="too small without an end"),
    ],
)
def test_what_is_not_a_number_of_these_is_refused(value: object, most: int | None, expected: Exception) -> None:
    with pytest.raises(type(expected)) as refused:
        check_number("x", value, 1, most)
    assert str(refused.value) == str(expected)


@pytest.mark.parametrize("value", ["c", "", None, ["a"]], ids=["another", "nothing", "none", "a list"])
def test_what_is_none_of_the_choices_is_refused(arguments: Any, value: object) -> None:
    with pytest.raises(ValueError, match=r"x must be 'a' or 'b', got"):
        arguments.check_choice("x", value, ("a", "b"))


def test_what_is_right_is_returned(arguments: Any) -> None:
    assert arguments.check_text("x", "a b", 3) == "a b"
    assert check_number("x", 10, 1, 10) == 10
    assert check_number("x", 10**9, 1) == 10**9
    assert arguments.check_choice("x", "b", ("a", "b")) == "b"
