"""The registry is one immutable picture of all packs, as quick with ten thousand tools as with ten."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from callers import ME
from ot.errors import ToolUnavailable, UnknownPack, UnknownTool
from ot.execution.call_context import CallContext
from ot.execution.tool_executor import ToolExecutor
from ot.registry import tool_loader
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_loader import ToolLoader
from ot.registry.tool_registry import Pack, ToolRegistry
from run_app import write_packs
from stubs import StubBackend


def pack(name: str, *tools: str, origin: str = "here") -> Pack:
    return Pack(name, "local", lambda: [Tool(name, tool) for tool in tools], origin)


@pytest.mark.scenario("004-07")
def test_a_tool_is_found_by_its_exact_names() -> None:
    registry = ToolRegistry([pack("web", "search", "fetch"), pack("file", "search")])
    assert registry.tool("web", "search").full_name == "web.search"
    assert registry.tool("file", "search").full_name == "file.search"
    assert [tool.full_name for tool in registry.tools()] == ["file.search", "web.fetch", "web.search"]


def test_what_does_not_exist_is_answered_with_what_does() -> None:
    registry = ToolRegistry([pack("web", "search", "fetch"), pack("file", "read")])
    with pytest.raises(UnknownPack, match=r"no pack 'webb', did you mean 'web'\? Available packs: file, web"):
        registry.tool("webb", "search")
    with pytest.raises(UnknownTool, match="'serch' is not in pack 'web', did you mean 'search'"):
        registry.tool("web", "serch")
    for near in ("Web", "web ", "WEB", "", "web.search"):
        with pytest.raises(UnknownPack):
            registry.pack(near)


@pytest.mark.scenario("004-09")
def test_a_later_pack_of_the_same_name_replaces_the_earlier_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        registry = ToolRegistry([pack("web", "old", origin="bundled"), pack("web", "new", origin="the project")])
    assert list(registry.pack("web").tools) == ["new"]
    (record,) = caplog.records
    assert record.getMessage() == "pack web of the project replaces the one of bundled"


@pytest.mark.scenario("004-09")
def test_a_later_tool_of_the_same_name_in_a_pack_replaces_the_earlier_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tools = [Tool("web", "search", doc="old"), Tool("web", "fetch"), Tool("web", "search", doc="new")]
    registry = ToolRegistry([Pack("web", "local", lambda: tools, origin="the project")])
    with caplog.at_level(logging.WARNING):
        assert registry.tool("web", "search").doc == "new"
        assert [tool.name for tool in registry.tools()] == ["fetch", "search"]
    (record,) = caplog.records
    assert record.getMessage() == "web.search of the project is defined twice: the later one replaces the earlier"


@pytest.mark.scenario("004-09")
def test_a_function_that_a_packs_file_defines_twice_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    twice = """
        from typing import overload
        @overload
        def kind(x: int) -> int: ...
        @overload
        def kind(x: str) -> str: ...
        def kind(x): return x
        def search(old): return 1
        def search(new): return 2
    """
    loader = write_packs(tmp_path, {"web": twice})
    with caplog.at_level(logging.WARNING):
        tools = ToolRegistry(loader.packs()).pack("web").tools
    assert {name: [p.name for p in tool.parameters] for name, tool in tools.items()} == {
        "kind": ["x"],
        "search": ["new"],
    }
    (record,) = caplog.records
    assert "web.search of packs_" in record.getMessage() and "is defined twice" in record.getMessage()


def test_packs_of_different_names_are_registered_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        ToolRegistry([pack("web", "a"), pack("file", "a")])
    assert caplog.records == []


def test_a_registry_cannot_be_changed() -> None:
    given = [pack("web", "search")]
    registry = ToolRegistry(given)
    given.append(pack("late", "x"))
    assert list(registry.packs) == ["web"]
    with pytest.raises(TypeError):
        registry.packs["other"] = pack("other")  # type: ignore[index]
    with pytest.raises(TypeError):
        registry.pack("web").tools["other"] = Tool("web", "other")  # type: ignore[index]
    with pytest.raises(AttributeError):
        registry.packs = {}  # type: ignore[misc]


def test_a_pack_is_read_once_when_it_is_first_asked_for() -> None:
    read: list[str] = []

    def tools() -> Iterable[Tool]:
        read.append("web")
        return [Tool("web", "search")]

    registry = ToolRegistry([Pack("web", "local", tools)])
    assert (read, list(registry.packs)) == ([], ["web"])
    for _ in range(3):
        registry.tool("web", "search")
        assert registry.tools()
    assert read == ["web"]


def test_a_pack_that_cannot_be_read_is_left_out_of_the_list() -> None:
    def tools() -> Iterable[Tool]:
        raise ToolUnavailable("bad", "it is broken")

    registry = ToolRegistry([Pack("bad", "local", tools), pack("web", "search")])
    assert [tool.full_name for tool in registry.tools()] == ["web.search"]
    assert registry.pack("bad").broken == "it is broken"


# ---------------------------------------------------------------- ten thousand tools

PACKS, TOOLS = 500, 20


def many(count: int) -> ToolRegistry:
    def tools(pack: str) -> list[Tool]:
        return [Tool(pack, f"tool_{n:02}", (Parameter("query", "keyword"),)) for n in range(TOOLS)]

    return ToolRegistry(Pack(f"pack_{n:03}", "local", lambda n=n: tools(f"pack_{n:03}")) for n in range(count))


@pytest.mark.anyio
async def test_a_call_is_as_quick_among_ten_thousand_tools_as_among_twenty() -> None:
    context = CallContext(ME, "run", 1, time.monotonic() + 60)
    few, lots = (
        ToolExecutor(many(count), {"in_process": StubBackend({"pack_000.tool_07": 1})}) for count in (1, PACKS)
    )
    assert len(lots.registry.tools()) == PACKS * TOOLS

    async def median(executor: ToolExecutor) -> float:
        times: list[float] = []
        for _ in range(300):
            started = time.perf_counter()
            await executor.call("pack_000", "tool_07", (), {"q": "x"}, context)
            times.append(time.perf_counter() - started)
        return statistics.median(times)

    # In turns, since others work on the same machine.
    rounds = [(await median(few), await median(lots)) for _ in range(5)]
    assert min(large / small for small, large in rounds) < 1.5


def test_nothing_is_parsed_when_ten_thousand_tools_are_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "\n".join(f"def tool_{n:02}(*, query: str) -> str:\n    return query\n" for n in range(TOOLS))
    for number in range(PACKS):
        (tmp_path / f"pack_{number:03}.py").write_text(source)
    parsed: list[str] = []
    original = tool_loader.read_pack_file

    def counted(file: Path, **names: str) -> list[Tool]:
        parsed.append(file.stem)
        return original(file, **names)

    monkeypatch.setattr(tool_loader, "read_pack_file", counted)
    registry = ToolRegistry(ToolLoader(tmp_path, "packs").packs())
    assert (len(registry.packs), parsed) == (PACKS, [])
    registry.tool("pack_123", "tool_07")
    assert parsed == ["pack_123"]
    assert len(registry.tools()) == PACKS * TOOLS


def test_an_error_among_ten_thousand_tools_lists_twenty() -> None:
    with pytest.raises(UnknownPack) as caught:
        many(PACKS).pack("pakc_123")
    text = str(caught.value)
    assert "did you mean 'pack_123'?" in text
    assert text.endswith(" and 480 more")
    assert text.count(",") < 25
