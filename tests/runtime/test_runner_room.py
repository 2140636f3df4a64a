"""What a run may take: its places, its budget, and the calls foreseen from its text."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

from ot.config.models import Limits
from ot.errors import LimitExceeded
from ot.registry import tool_loader
from ot.registry.tool import Tool
from ot.runtime import fence_processor, pack_proxy, runner
from ot.runtime.engines.engine import Function
from ot.runtime.foreseen_calls import foreseen_calls
from ot.runtime.program import parse_program
from ot.runtime.run_budget import MAX_DEPTH, RunBudget, current_budget
from pace import effort
from run_app import BRAVE, Calls, error_of, run_in, running_app, value_of

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
    async def call(self: object, pack: str, name: str, args: Any, kwargs: Any, **_more: Any) -> str:
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


@pytest.mark.parametrize(
    ("code", "most"),
    [
        ("t.f()", 1),
        ("t.f(); t.f()", 2),
        ("t.f(); t.F(); t.f_()", 3),
        ("if x:\n    t.f()\nelse:\n    t.f()", 2),
        ("for i in range(50):\n    t.f()", 50),
        ("for i in range(10, 0, -3):\n    t.f()", 4),
        ("for i in range(0):\n    t.f()", 0),
        ("for i in [1, 2, 3]:\n    for j in (1, 2):\n        t.f()", 6),
        ("for i in range(5):\n    t.f()\nelse:\n    t.f()", 6),
        ("for letter in 'abc':\n    t.f()", 3),
        ("[t.f() for i in range(4) for j in range(3) if j]", 12),
        ("ids = [1, 2, 3]\nfor i in ids:\n    t.f()", 3),
        ("await asyncio.gather(*[t.f() for i in range(7)])", 7),
        ("for i in ids:\n    t.f()", None),
        ("ids = [1]\nids.append(2)\nfor i in ids:\n    t.f()", None),
        ("ids = [1]\nids = ids + [2]\nfor i in ids:\n    t.f()", None),
        ("ids = [1]\nids += [2]\nfor i in ids:\n    t.f()", None),
        ("for i in [*ids]:\n    t.f()", None),
        ("for i in range(n):\n    t.f()", None),
        ("for i in range(10 ** 9 ** 9):\n    t.f()", None),
        ("for i in range(True):\n    t.f()", None),
        ("while x:\n    t.f()", None),
        ("def g():\n    t.f()\ng()", None),
        ("list(map(lambda i: t.f(), range(3)))", None),
        ("getattr(t, 'f')()", None),
        ("other.f(); t.other()", None),
    ],
)
def test_calls_are_counted_where_their_number_is_written(code: str, most: int | None) -> None:
    assert foreseen_calls(parse_program(code), "t.f", None, 1).most == most


def test_calls_by_an_alias_count_as_calls_of_the_tool() -> None:
    program = parse_program("memory.write('a')\nfor x in range(3):\n    memory.save(x)")
    assert foreseen_calls(program, "memory.write", None, 1).most == 4


def test_the_line_is_the_engines_or_the_first_that_names_the_tool() -> None:
    program = parse_program("x = 1\nt.f(x)\nt.f(2)")
    assert (foreseen_calls(program, "t.f", 3, 1).line, foreseen_calls(program, "t.f", 3, 1).text) == (3, "t.f(2)")
    assert (foreseen_calls(program, "t.f", None, 1).line, foreseen_calls(program, "t.f", None, 1).text) == (2, "t.f(x)")


def test_calls_of_an_unreadably_dense_program_are_not_counted() -> None:
    deep, long = parse_program("-" * 120 + "t.f()"), parse_program(f"t.f('{'x' * 120_000}')")
    assert foreseen_calls(deep, "t.f", None, 1).most is None
    with effort() as spent:
        assert foreseen_calls(long, "t.f", 1, 1).most is None
    assert spent.loops < 80


META = """
    APPS = []

    async def run(*, code: str) -> str:
        reply = await APPS[0].run(code)
        if reply.is_error:
            raise RuntimeError(reply.texts[-1])
        return reply.texts[-1]
"""


def introduce(app: object) -> None:
    """Give the pack ``meta`` the app that it runs in."""
    import sys

    module = next(
        module for name, module in sys.modules.items() if name.startswith("packs_") and name.endswith(".meta")
    )
    module.APPS.append(app)


async def test_inner_runs_spend_the_calls_of_the_outer(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"meta": META}, {"limits": {"calls": 10}}) as app:
        assert error_of(await app.run("meta.run(code='1')"))
        introduce(app)
        assert value_of(await app.run("[meta.run(code='ot.version()') for i in range(5)][0]"))
        text = error_of(await app.run("[meta.run(code='ot.version()') for i in range(6)]"))
        assert "limits.calls" in text
        assert value_of(await app.run("1")) == "1"


async def test_inner_runs_end_with_the_time_of_the_outer(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"meta": META}, {"limits": {"run_seconds": 0.5}}) as app:
        await app.run("meta.run(code='1')")
        introduce(app)
        text = error_of(await app.run("import time\ntime.sleep(0.3)\nmeta.run(code='import time\\ntime.sleep(0.4)')"))
        assert "limits.run_seconds" in text


async def test_runs_within_runs_are_bounded(tmp_path: Path) -> None:
    calls = Calls()
    async with running_app(tmp_path, {"meta": META}, observers=[calls]) as app:
        await app.run("meta.run(code='1')")
        introduce(app)
        calls.records.clear()
        code = "1"
        for _ in range(10):
            code = f"meta.run(code={code!r})"
        assert f"nested more than {MAX_DEPTH} levels deep" in error_of(await app.run(code))
        assert len(calls.records) == MAX_DEPTH


async def test_runs_beside_each_other_are_not_nested(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"meta": META}) as app:
        await app.run("meta.run(code='1')")
        introduce(app)
        inner = "import time\ntime.sleep(0.05)\n7"
        code = f"import asyncio\nawait asyncio.gather(*[meta.run(code={inner!r}) for i in range(8)])"
        assert value_of(await app.run(code)) == '["7","7","7","7","7","7","7","7"]'


async def test_a_run_leaves_no_budget_behind(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        await app.run("1")
        await app.run("1/0")
        assert current_budget.get() is None


def test_a_budget_counts_its_calls() -> None:
    budget = RunBudget(Limits(calls=2, run_seconds=60))
    budget.spend_call()
    budget.spend_call()
    with pytest.raises(LimitExceeded) as caught:
        budget.spend_call()
    assert caught.value.limit == "calls"
    assert 59 < budget.deadline.seconds_left <= 60
