"""A result is success or failure, and always JSON."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import Result, ToolFailure


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def parsed(result: Result[Any]) -> dict[str, Any]:
    """Read the JSON strictly: NaN and Infinity are none of its words."""

    def refuse(word: str) -> None:
        raise AssertionError(word)

    return json.loads(result.to_json_str().encode(), parse_constant=refuse)


@pytest.mark.scenario("003-01")
def test_a_success_carries_its_value_and_what_was_said_beside_it() -> None:
    result = Result.ok([1], message="one found", instruction="Show it.")
    assert result == Result(True, [1], message="one found", instruction="Show it.")
    assert Result.ok(3).success is True
    assert (Result.ok(3).value, Result.ok(3).message, Result.ok(3).instruction) == (3, None, None)


@pytest.mark.scenario("003-02")
def test_a_failure_carries_error_and_type_and_what_was_said_beside_it() -> None:
    cause = KeyError("x")
    result = Result.failure("it is gone", "not_found", exception=cause, message="Sorry.", instruction="Stop.")
    assert (result.success, result.value) == (False, None)
    assert (result.error, result.error_type, result.exception) == ("it is gone", "not_found", cause)
    assert (result.message, result.instruction) == ("Sorry.", "Stop.")


@pytest.mark.scenario("003-03")
def test_the_json_has_the_fields_that_are_set_and_the_exception_as_type_and_message() -> None:
    assert parsed(Result.ok({"a": [1, None]})) == {"success": True, "value": {"a": [1, None]}}
    assert parsed(Result.ok(None)) == {"success": True, "value": None}
    full = Result.failure("e", "t", exception=ValueError("why"), message="m", instruction="i")
    assert parsed(full) == {
        "success": False,
        "error": "e",
        "error_type": "t",
        "exception_type": "ValueError",
        "exception_message": "why",
        "message": "m",
        "instruction": "i",
    }


@pytest.mark.scenario("003-04")
def test_the_instruction_to_the_agent_stands_beside_the_message_to_the_user() -> None:
    found = parsed(Result.failure("e", "t", message="It is locked.", instruction="Do not try to unlock it."))
    assert (found["message"], found["instruction"]) == ("It is locked.", "Do not try to unlock it.")
    assert "message" not in parsed(Result.ok(1, instruction="Go on."))


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, float("nan"), float("inf"), b"\xff", "\ud800", {(1, 2): 3}, Silent()]
)
def test_a_value_that_json_does_not_know_still_gives_json(value: object) -> None:
    assert parsed(Result.ok(value))["success"] is True


def test_a_value_that_holds_itself_still_gives_json() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    assert parsed(Result.ok(cycle))["success"] is True


def test_an_exception_without_words_is_named() -> None:
    found = parsed(Result.failure("e", exception=Silent()))
    assert (found["exception_type"], found["exception_message"]) == ("Silent", "<Silent without text>")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)
    )
)
def test_plain_data_comes_back_from_the_json_as_it_was(value: object) -> None:
    assert parsed(Result.ok(value))["value"] == value


def test_a_result_cannot_be_changed_or_be_both() -> None:
    with pytest.raises(FrozenInstanceError):
        Result.ok(1).value = 2  # pyright: ignore[reportAttributeAccessIssue] - the subject
    with pytest.raises(ValueError, match="a success carries no error"):
        Result(True, 1, error="x", error_type="y")
    halves: list[dict[str, Any]] = [{}, {"error": "x"}, {"error_type": "y"}]
    for half in halves:
        with pytest.raises(ValueError, match="a failure carries error and error_type"):
            Result(False, **half)


def test_unwrapping_gives_the_value_or_raises_what_the_failure_says() -> None:
    assert Result.ok(None).unwrap() is None
    with pytest.raises(ToolFailure, match=r"^not_found: it is gone \(Stop\.\)$"):
        Result.failure("it is gone", "not_found", instruction="Stop.").unwrap()
