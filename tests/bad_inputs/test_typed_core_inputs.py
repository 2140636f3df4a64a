"""Arguments, names and results that a typed tool must bear."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from mcp import Client, MCPError

from bad_inputs.bad_inputs_corpus import Item, each_item
from callers import ME
from mcp_core import Result, ToolArguments, program_function, validated
from mcp_core.typed_tools import TypedTools
from ot.errors import InvalidArguments, ToolError, ToolFailed, UnknownTool
from ot.execution.backends.in_process import InProcessBackend
from ot.execution.call_context import CallContext
from ot.execution.tool_context import ToolContext
from ot.execution.tool_executor import ToolExecutor
from ot.files.path_guard import PathGuard
from ot.registry.tool_loader import tools_of_functions
from ot.registry.tool_registry import Pack, ToolRegistry
from typed_tools import Arguments, create

pytestmark = pytest.mark.anyio

FIELDS = {
    "typed_core-01": "lit",
    "typed_core-02": "arguments",
    "typed_core-03": "arguments",
    "typed_core-04": "extra",
    "typed_core-05": "__proto__",
    "typed_core-06": "n",
    "typed_core-07": "n",
    "typed_core-08": "s",
    "typed_core-09": "lit",
}
"""The field that each entry's error must name."""
GOOD = {"lit": "CREATE_DOCUMENT"}


def given(item: Item) -> Any:
    """Return an entry's arguments, completed by what is right, so that nothing else is wrong with them."""
    return {**GOOD, **item["args"]} if isinstance(item["args"], dict) else item["args"]


@each_item("typed_core", having="args")
def test_bad_arguments_are_a_failure_that_names_the_field(item: Item) -> None:
    result = validated(Arguments, given(item))
    assert (result.success, result.error_type) == (False, "invalid_arguments")
    assert (result.error or "").startswith(f"{FIELDS[item['id']]}: ")
    assert json.loads(result.to_json_str())["instruction"].startswith("Correct the arguments")


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan"), 10.5])
def test_numbers_that_are_none_are_refused(number: float) -> None:
    assert "n: Input should be" in (validated(Arguments, GOOD | {"n": number}).error or "")
    if number != 10.5:
        assert "ratio: Input should be a finite number" in (validated(Arguments, GOOD | {"ratio": number}).error or "")


@each_item("typed_core", having="args")
async def test_over_mcp_bad_arguments_are_an_answer(item: Item) -> None:
    arguments = given(item)
    async with classic_client() as client:
        if arguments is None or isinstance(arguments, dict):
            reply = await client.call_tool("create", arguments)
            assert reply.is_error
            assert FIELDS[item["id"]] in json.loads(getattr(reply.content[0], "text", ""))["error"]
        else:
            with pytest.raises(ValueError, match="arguments"):  # the client itself will not send it
                await client.call_tool("create", arguments)
        assert not (await client.call_tool("create", GOOD)).is_error


@each_item("typed_core", having="args")
async def test_at_the_door_bad_arguments_are_a_tool_s_error(item: Item, tmp_path: Path) -> None:
    arguments = given(item)
    if arguments is None or isinstance(arguments, dict):
        with pytest.raises((InvalidArguments, ToolFailed), match=FIELDS[item["id"]]):
            await call(tmp_path, "create", (), arguments or {})
    else:
        with pytest.raises(ToolFailed, match="lit"):  # given by place it is meant for the first argument
            await call(tmp_path, "create", (arguments,), {})
    assert await call(tmp_path, "create", (), {**GOOD, "s": "x"}) == "x"


@each_item("typed_core", having="tool")
async def test_a_tool_that_is_none_is_an_answer(item: Item, tmp_path: Path) -> None:
    with pytest.raises(UnknownTool):
        await call(tmp_path, item["tool"], (), {})
    async with classic_client() as client:
        try:
            failed = (await client.call_tool(item["tool"], {})).is_error
        except MCPError:
            failed = True
        assert failed
        assert not (await client.call_tool("create", GOOD)).is_error


@each_item("typed_core", having="register")
async def test_one_name_twice_is_replaced_by_its_own_module_and_refused_to_another(
    item: Item, caplog: pytest.LogCaptureFixture
) -> None:
    before = await ToolArguments.get_declared_tools()

    def same(args: Arguments) -> None: ...

    try:
        first, second = same, FunctionType(same.__code__, {"__name__": __name__}, "same")
        ToolArguments.declare(first)
        ToolArguments.declare(second)
        assert "is declared again and replaced" in caplog.text
        other = ToolArguments.declare(FunctionType(same.__code__, {"__name__": "elsewhere"}, "same"))
        with pytest.raises(ValueError, match="and elsewhere declare a tool 'same'"):
            await ToolArguments.get_declared_tools()
        assert await ToolArguments.get_declared_tools("elsewhere") == {"same": other}
        assert await ToolArguments.get_declared_tools() == {"same": second}
    finally:
        for tool in before.values():
            ToolArguments.declare(tool)


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@each_item("typed_core", having="result")
def test_a_result_is_json_whatever_it_holds(item: Item) -> None:
    results = {
        "typed_core-14": Result.ok(object()),
        "typed_core-15": Result.failure("failed", exception=Silent()),
    }
    parsed = json.loads(results[item["id"]].to_json_str())
    assert parsed["success"] == (item["id"] == "typed_core-14")


def classic_client() -> Client:
    from fastmcp import FastMCP

    server = FastMCP("test")
    TypedTools(server).tool(name="create", description="d")(create)
    return Client(server._mcp_server)


async def call(directory: Path, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    functions = {"create": program_function(create)}
    registry = ToolRegistry([Pack("typed", "local", lambda: tools_of_functions("typed", functions))])
    context = ToolContext(PathGuard((directory,)), directory)
    backend = InProcessBackend(lambda *_: context, {"typed:create": functions["create"]})
    executor = ToolExecutor(registry, {"in_process": backend})
    try:
        at_the_door = CallContext(ME, "run", 1, time.monotonic() + 60)
        return (await executor.call("typed", name, args, kwargs, at_the_door))[0]
    except Exception as error:
        assert isinstance(error, ToolError)
        raise
