"""Typed tools on a server, as the official client sees them and the docstrings show them."""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
import subprocess
import sys
from typing import Annotated, Any, ClassVar, Literal

import pytest
from fastmcp import FastMCP
from mcp import Client
from pydantic import BaseModel

import mcp_core
from mcp_core import Consent, Result, ToolArguments, ToolFailure
from mcp_core.typed_tools import TypedTools

pytestmark = pytest.mark.anyio

BLOCKED = """\
import sys
from importlib.metadata import distribution
from packaging.requirements import Requirement

def needed(name, extras, seen):
    for line in distribution(name).requires or ():
        wanted = Requirement(line)
        key = (wanted.name, *sorted(wanted.extras))
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            if key not in seen:
                seen.add(key)
                needed(wanted.name, wanted.extras, seen)
    return {name, *(key[0] for key in seen)}

files = [file for name in needed(sys.argv[2], (), set()) for file in distribution(name).files or ()]
allowed = {"mcp_core", *sys.stdlib_module_names, *(file.parts[0].partition(".")[0] for file in files)}

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed and not name.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

for name in [name for name in sys.modules if name.partition(".")[0] == "packaging"]:
    del sys.modules[name]
sys.meta_path.insert(0, Block())
__import__(sys.argv[1])
print("imported")
"""


class Quote(BaseModel):
    symbol: str
    price: float


class QuoteArguments(ToolArguments):
    read_only: ClassVar[bool | None] = True

    symbols: list[str]
    fail: Literal["", "kindly", "badly"] = ""


class SellArguments(ToolArguments):
    symbol: str
    consent: Annotated[Literal["SELL"], Consent()]


def quotes(args: QuoteArguments) -> Result[list[Quote]]:
    """Return prices."""
    if args.fail == "kindly":
        raise ToolFailure("the market is closed", "closed", "Ask again tomorrow.")
    if args.fail == "badly":
        raise LookupError("no luck")
    return Result.ok([Quote(symbol=symbol, price=1.5) for symbol in args.symbols], message="fresh")


async def sell(args: SellArguments) -> Result[None]:
    """Sell everything."""
    return Result.failure("nothing to sell", "empty", message="You have none.")


def client_of(*functions: Any, **options: Any) -> Client:
    server = FastMCP("market")
    TypedTools(server).register(*functions, **options)
    return Client(server._mcp_server)


async def call(name: str, **arguments: Any) -> tuple[bool, dict[str, Any]]:
    """Return whether a call failed, and its result, which is the same as text and as structured content."""
    async with client_of(quotes, sell, prefix="market") as client:
        await client.list_tools()  # with the schemas the client checks what comes back
        reply = await client.call_tool(f"market_{name}", arguments)
    assert reply.structured_content == json.loads(getattr(reply.content[0], "text", ""))
    return bool(reply.is_error), reply.structured_content or {}


@pytest.mark.scenario("003-14")
async def test_a_client_sees_the_fields_of_the_model_the_schema_of_the_result_and_hints() -> None:
    async with client_of(quotes, sell, prefix="market") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    found, sold = tools["market_quotes"], tools["market_sell"]
    assert list(found.input_schema["properties"]) == ["symbols", "fail"]
    value = (found.output_schema or {})["properties"]["value"]
    assert (value["type"], value["items"]["required"]) == ("array", ["symbol", "price"])
    assert "- `symbols` (`list[str]`, required)" in (found.description or "")
    assert found.annotations
    assert sold.annotations
    assert (found.annotations.read_only_hint, found.annotations.destructive_hint) == (True, False)
    assert (sold.annotations.read_only_hint, sold.annotations.destructive_hint) == (None, True)


async def test_a_success_carries_its_model_as_json() -> None:
    failed, found = await call("quotes", symbols=["X"])
    assert (failed, found) == (
        False,
        {"success": True, "value": [{"symbol": "X", "price": 1.5}], "message": "fresh"},
    )


async def test_failures_are_errors_with_the_fields_that_are_set() -> None:
    assert await call("quotes", symbols=["X"], fail="kindly") == (
        True,
        {
            "success": False,
            "error": "the market is closed",
            "error_type": "closed",
            "instruction": "Ask again tomorrow.",
        },
    )
    assert await call("quotes", symbols=["X"], fail="badly") == (
        True,
        {
            "success": False,
            "error": "market_quotes failed",
            "error_type": "internal_error",
            "exception_type": "LookupError",
            "exception_message": "no luck",
            "instruction": "Tell the user.",
        },
    )
    failed, found = await call("sell", symbol="X", consent="SELL")
    assert (failed, found["error_type"], found["message"]) == (True, "empty", "You have none.")
    failed, found = await call("sell", symbol="X", consent="yes")
    assert (failed, found["error_type"], found["error"]) == (
        True,
        "invalid_arguments",
        "consent: Input should be 'SELL'",
    )


async def test_definitions_may_be_brief() -> None:
    async with client_of(quotes, prefix="", brief=True) as client:
        (tool,) = (await client.list_tools()).tools
        assert (tool.description, tool.meta) == ("Return prices.", None)
        assert (await client.call_tool("quotes", {"symbols": []})).structured_content


def test_one_name_is_registered_once() -> None:
    tools = TypedTools(FastMCP("market"))
    tools.register(quotes, prefix="a")
    tools.register(quotes, prefix="b")
    with pytest.raises(ValueError, match=f"{__name__}: tool 'a_quotes' is already registered by {__name__}"):
        tools.register(quotes, prefix="a")


@pytest.mark.parametrize(("module", "distribution"), [("mcp_core", "pydantic"), ("mcp_core.typed_tools", "fastmcp")])
def test_it_needs_nothing_but_what_its_page_says(module: str, distribution: str) -> None:
    command = [sys.executable, "-c", BLOCKED, module, distribution]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "imported\n", done.stderr


MODULES = ["mcp_core", *(f"mcp_core.{found.name}" for found in pkgutil.iter_modules(mcp_core.__path__))]
SHOWING = ["mcp_core", *(f"mcp_core.{name}" for name in ("consent", "program_function", "result", "tool_arguments"))]


def attempted(name: str) -> doctest.TestResults:
    """Run the examples of a module's own docstring, as a reader would type them."""
    runner, finder = doctest.DocTestRunner(verbose=False), doctest.DocTestFinder(recurse=False)
    for test in finder.find(importlib.import_module(name), globs={"__name__": "__main__"}):
        runner.run(test)
    return runner.summarize(verbose=False)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_docstring_do_what_they_show(name: str) -> None:
    assert attempted(name).failed == 0


@pytest.mark.parametrize("name", SHOWING)
def test_what_authors_use_is_shown_by_example(name: str) -> None:
    assert attempted(name).attempted >= 3
