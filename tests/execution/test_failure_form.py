"""A failed call is the same error on the other host, and whatever is told of one, it is an error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ot.errors import (
    DataTooLarge,
    InvalidArguments,
    LimitExceeded,
    LoginNeeded,
    NotApproved,
    OneToolError,
    ServerUnavailable,
    ToolBusy,
    ToolDenied,
    ToolError,
    ToolFailed,
    ToolTimeout,
    ToolUnavailable,
    WorkerDied,
)
from ot.execution.failure_form import error_of_form, failure_form
from ot.registry.tool import Tool

TOOL = Tool("weather", "forecast")
SAME: list[ToolError] = [
    ToolFailed("weather.forecast", "ValueError", "no such city"),
    InvalidArguments("weather.forecast", "weather.forecast() got an unexpected argument", "weather.forecast(city)"),
    DataTooLarge("the value of weather.forecast", "too large"),
    ToolTimeout("weather.forecast", 2.5),
    ToolBusy("weather.forecast", "256 calls are waiting"),
    ToolUnavailable("weather", "its file is broken"),
    WorkerDied("weather", "killed by SIGKILL", "last words"),
    ServerUnavailable("radar", "no connection", retry_seconds=1.5, unknown=True),
]


def over_the_wire(error: OneToolError) -> ToolError:
    return error_of_form(json.loads(json.dumps(failure_form(error))), TOOL)


@pytest.mark.parametrize("error", SAME, ids=lambda error: type(error).__name__)
def test_an_error_of_a_call_is_the_same_over_there(error: ToolError) -> None:
    came = over_the_wire(error)
    assert (type(error), str(error)) == (type(came), str(came))
    assert getattr(error, "unknown", None) == getattr(came, "unknown", None)


@pytest.mark.parametrize(
    "error", [ToolDenied("weather.wipe", "*.wipe"), NotApproved("weather.wipe", "the user said no")]
)
def test_what_the_policy_of_the_host_refuses_is_said_to_be_the_hosts(error: ToolError) -> None:
    came = over_the_wire(error)
    assert isinstance(came, ToolFailed)
    assert ("PermissionError", f"the host of the pack refuses it: {error}") == (came.kind, came.message)


@pytest.mark.parametrize("error", [LimitExceeded("calls", "too many calls"), LoginNeeded("radar", "nobody logged in")])
def test_any_other_error_keeps_its_name_and_its_text(error: OneToolError) -> None:
    came = over_the_wire(error)
    assert isinstance(came, ToolFailed)
    assert (type(error).__name__, str(error)) == (came.kind, came.message)


def test_an_error_names_the_tool_as_it_is_called_here() -> None:
    came = error_of_form(failure_form(ToolTimeout("weather.forecast", 2.0)), Tool("meteo", "forecast"))
    assert "meteo.forecast did not answer within 2 s and was cancelled" == str(came)


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"error": "ToolTimeout"},
        {"error": "ToolTimeout", "seconds": "soon"},
        {"error": "ToolFailed", "kind": ["x"], "message": "y"},
        {"error": "ServerUnavailable", "server": "a", "why": "b", "unknown": "no"},
        {"error": "SystemExit", "message": "x"},
        {"error": ["ToolFailed"]},
    ],
)
def test_a_malformed_failure_is_a_failure_too(form: dict[str, Any]) -> None:
    came = error_of_form(form, TOOL)
    assert isinstance(came, ToolFailed)
    assert str(came)


def test_a_long_text_is_cut() -> None:
    came = over_the_wire(ToolFailed("weather.forecast", "ValueError", "x" * 100_000))
    assert len(str(came)) <= 4000
