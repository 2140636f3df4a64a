"""The decorator of tools, and what their results become."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import TRACE, ExtMcpToolDecorator, Result, ToolArguments, ToolFailure
from mcp_core.tool_decorator import PREFIX
from mcp_core.typed_tools import TypedTools
from typed_tools import repeat, repeat_later

pytestmark = pytest.mark.anyio


class Server:
    """Something with FastMCP's way to register tools."""

    def __init__(self) -> None:
        self.registered: dict[str, tuple[Callable[..., Any], str, dict[str, Any]]] = {}

    def tool(self, *, name: str, description: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self.registered[name] = (function, description, options)
            return function

        return register


def work() -> str:
    logging.getLogger("work").warning("working")
    return "done"


async def work_later() -> str:
    return work()


def fail() -> None:
    raise LookupError("no luck")


async def fail_later() -> None:
    fail()


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """All that is logged, from TRACE on."""
    caplog.set_level(TRACE)
    return caplog


def seen(log: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in log.records if record.name != "asyncio"]


@pytest.mark.scenario("003-12")
def test_without_a_prefix_the_one_of_the_environment_is_used_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PREFIX, raising=False)
    assert ExtMcpToolDecorator(Server()).final_name("work") == "work"
    monkeypatch.setenv(PREFIX, "house")
    assert ExtMcpToolDecorator(Server()).final_name("work") == "house_work"
    assert ExtMcpToolDecorator(Server(), prefix="home").final_name("work") == "home_work"
    assert ExtMcpToolDecorator(Server(), prefix="").final_name("work") == "work"
    assert PREFIX == "MCP_TOOL_PREFIX"


@pytest.mark.scenario("003-13")
def test_a_tool_may_have_its_own_prefix_or_none() -> None:
    server = Server()
    tools = ExtMcpToolDecorator(server, prefix="house")
    tools.tool(description="d", prefix="field")(work)
    tools.tool(description="d", prefix="")(work)
    assert list(server.registered) == ["field_work", "work"]


@pytest.mark.scenario("003-14")
async def test_fastmcp_knows_a_tool_by_prefix_and_name() -> None:
    server = FastMCP("test")
    tools = ExtMcpToolDecorator(server, prefix="house")
    for tool in (repeat, repeat_later):
        tools.tool(description=ToolArguments.build_tool_description(tool))(tool)
    async with Client(server) as client:
        listed = {tool.name: tool.description or "" for tool in await client.list_tools()}
        assert list(listed) == ["house_repeat", "house_repeat_later"]
        assert "- `text` (`str`, required)" in listed["house_repeat"]
        for name in listed:
            reply = await client.call_tool(name, {"args": {"text": "ha"}})
            assert reply.structured_content
            assert reply.structured_content["value"] == "haha"


def test_options_go_to_the_server_and_the_function_comes_back_under_its_own_name() -> None:
    server = Server()
    found = ExtMcpToolDecorator(server, prefix="p").tool(description="d", name="n", tags={"t"})(work)
    function, description, options = server.registered["p_n"]
    assert (found, description, options) == (function, "d", {"tags": {"t"}})
    assert (found.__name__, found()) == ("work", "done")


@pytest.mark.scenario("003-15", "003-17")
def test_a_sync_call_is_logged_before_as_trace_and_after_as_debug(log: pytest.LogCaptureFixture) -> None:
    ExtMcpToolDecorator(Server(), prefix="p").tool(description="d")(work)()
    assert seen(log) == [
        ("TRACE", "Tool called: p_work"),
        ("WARNING", "working"),
        ("DEBUG", "Tool p_work completed successfully"),
    ]


@pytest.mark.scenario("003-15", "003-16")
async def test_an_async_call_is_logged_before_and_after_as_trace(log: pytest.LogCaptureFixture) -> None:
    await ExtMcpToolDecorator(Server(), prefix="p").tool(description="d")(work_later)()
    assert seen(log) == [
        ("TRACE", "Tool called: p_work_later"),
        ("WARNING", "working"),
        ("TRACE", "Tool p_work_later completed successfully"),
    ]


@pytest.mark.scenario("003-18")
async def test_a_failure_is_logged_as_an_error_and_raised_again(log: pytest.LogCaptureFixture) -> None:
    tools = ExtMcpToolDecorator(Server(), prefix="p")
    with pytest.raises(LookupError, match="no luck"):
        tools.tool(description="d")(fail)()
    with pytest.raises(LookupError, match="no luck"):
        await tools.tool(description="d")(fail_later)()
    assert seen(log) == [
        ("TRACE", "Tool called: p_fail"),
        ("ERROR", "Tool p_fail failed: no luck"),
        ("TRACE", "Tool called: p_fail_later"),
        ("ERROR", "Tool p_fail_later failed: no luck"),
    ]


def test_a_failure_that_is_returned_is_logged_as_one_that_is_raised(log: pytest.LogCaptureFixture) -> None:
    def returned() -> Result[Any]:
        return Result.failure("nothing found", "not_found", instruction="Ask.")

    def raised() -> None:
        raise ToolFailure("nothing found", "not_found", "Ask.")

    tools = ExtMcpToolDecorator(Server(), prefix="p")
    assert not tools.tool(description="d", name="find")(returned)().success
    with pytest.raises(ToolFailure):
        tools.tool(description="d", name="find")(raised)()
    said = [("TRACE", "Tool called: p_find"), ("ERROR", "Tool p_find failed: not_found: nothing found (Ask.)")]
    assert seen(log) == said * 2


@pytest.mark.scenario("003-15")
async def test_a_call_that_is_refused_is_logged(log: pytest.LogCaptureFixture) -> None:
    server = FastMCP("test")
    TypedTools(server).register(repeat, prefix="p")
    async with Client(server) as client:
        await client.call_tool("p_repeat", {"text": 3}, raise_on_error=False)
    called, failed = [line for line in seen(log) if "p_repeat" in line[1]]
    assert called == ("TRACE", "Tool called: p_repeat")
    assert failed[0] == "ERROR"
    assert failed[1].startswith("Tool p_repeat failed: invalid_arguments: text: Input should be a valid string")


def test_what_is_not_asked_for_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    ExtMcpToolDecorator(Server(), prefix="p").tool(description="d")(work)()
    assert seen(caplog) == [("WARNING", "working")]


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
