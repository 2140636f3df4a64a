"""The runner orders the steps; each step's work is done in the module that is named after it."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

from ot.registry import tool_loader
from ot.registry.tool import Tool
from ot.runtime import fence_processor, pack_proxy, runner
from ot.runtime.engines.engine import Function
from run_app import BRAVE, error_of, run_in, running_app, value_of

pytestmark = pytest.mark.anyio

TREE = ast.parse(inspect.getsource(runner))


def imported_from() -> dict[str, set[str]]:
    """Return the names that the runner imports, by module."""
    imports = [node for node in ast.walk(TREE) if isinstance(node, ast.ImportFrom)]
    return {node.module or "": {alias.name for alias in node.names} for node in imports}


@pytest.mark.scenario("000-36")
async def test_fences_are_taken_off_by_the_fence_processor_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = "```python\n42\n```"
    async with running_app(tmp_path) as app:
        assert value_of(await app.run(command)) == "42"
        monkeypatch.setattr(fence_processor, "_strip_once", lambda text: text)
        assert "SyntaxError" in error_of(await app.run("```python\n43\n```"))


@pytest.mark.scenario("000-37")
async def test_tools_are_found_and_kept_by_the_tool_loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = tool_loader.read_pack_file

    def counted(file: Path, **names: str) -> list[Tool]:
        read.append(file.stem)
        return original(file, **names)

    monkeypatch.setattr(tool_loader, "read_pack_file", counted)
    async with running_app(tmp_path, {"brave": BRAVE}) as app:
        assert read == []
        for _ in range(3):
            assert value_of(await app.run("brave.search(query='x')")) == "brave found x"
    assert read == ["brave"]


@pytest.mark.scenario("000-37")
async def test_what_the_tool_loader_does_not_find_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(file: Path, **names: str) -> list[Tool]:
        return []

    monkeypatch.setattr(tool_loader, "read_pack_file", nothing)
    assert "'search' is not in pack 'brave'" in error_of(
        await run_in(tmp_path, "brave.search(query='x')", {"brave": BRAVE})
    )


@pytest.mark.scenario("000-38")
async def test_dots_are_resolved_by_the_pack_proxy_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def call(self: object, pack: str, name: str, args: Any, kwargs: Any, line: Any = None) -> str:
        return f"{pack}.{name} was called"

    async def foresee(*_given: Any, **_named: Any) -> None:
        return None

    command = "found = brave.search(query='x')\nfind = brave.other\n[found, find()]"
    async with running_app(tmp_path, {"brave": BRAVE}) as app:
        assert "'other' is not in pack 'brave'" in error_of(await app.run(command))
        monkeypatch.setattr(pack_proxy.PackProxy, "foresee", foresee)
        monkeypatch.setattr(pack_proxy.PackProxy, "call", call)
        monkeypatch.setattr(pack_proxy.PackProxy, "member", lambda *_: Function())
        assert value_of(await app.run(command)) == '["brave.search was called","brave.other was called"]'


@pytest.mark.scenario("000-39")
def test_the_runner_imports_fence_loader_and_proxy_from_their_modules() -> None:
    modules = imported_from()
    assert "strip_fences" in modules["ot.runtime.fence_processor"]
    assert "load_tool" in modules["ot.registry.tool_loader"]
    assert "PackProxy" in modules["ot.runtime.pack_proxy"]


@pytest.mark.scenario("000-39")
async def test_what_the_runner_imports_does_the_work_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []

    def watched(name: str) -> Any:
        real: Any = getattr(runner, name)
        return lambda *args, **kwargs: used.append(name) or real(*args, **kwargs)

    steps = ["strip_fences", "parse_program", "expand_aliases", "PackProxy", "load_tool"]
    async with running_app(tmp_path, {"brave": BRAVE}) as app:
        for name in steps:
            monkeypatch.setattr(runner, name, watched(name))
        assert value_of(await app.run("```\nbrave.search(query='x')\n```")) == "brave found x"
    assert set(used) == set(steps)


@pytest.mark.scenario("000-39")
def test_the_runner_holds_nothing_but_the_order_of_steps() -> None:
    classes = [node.name for node in TREE.body if isinstance(node, ast.ClassDef)]
    assert classes == ["Runner"]
    assert not [node for node in TREE.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    texts = [node.value for node in ast.walk(TREE) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert not [text for text in texts if "```" in text or "~~~" in text or ".py" in text]
    names = {alias.name for node in ast.walk(TREE) if isinstance(node, ast.Import) for alias in node.names}
    assert names.isdisjoint({"re", "ast", "tokenize", "importlib", "inspect", "pkgutil", "os", "pathlib"})
    assert not [m for m in imported_from() if m.startswith(("ot.execution.backends", "ot_tools"))]
