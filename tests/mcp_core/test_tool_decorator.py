"""Tools are registered under a prefix, and their calls are logged."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from fastmcp import Client, FastMCP

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
