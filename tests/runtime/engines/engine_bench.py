"""An engine of either kind, with what programs can call on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from textwrap import dedent
from typing import Any

import pytest

from callers import ME
from ot.config.models import Limits, Project
from ot.errors import RunError
from ot.execution.tool_executor import ToolExecutor
from ot.logs import current_run
from ot.registry.tool_loader import tools_of_functions
from ot.registry.tool_registry import Pack, ToolRegistry
from ot.runtime.engines.engine import Engine, Outcome
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.pack_proxy import PackProxy
from ot.runtime.program import parse_program
from ot.runtime.project_proxy import ProjectProxy
from ot.runtime.run_budget import RunBudget
from stubs import StubBackend

ENGINES: dict[str, Callable[[], Engine]] = {
    "portable": lambda: PortableEngine(processes=4),
    "exact": lambda: ExactEngine(processes=4),
}

Functions = Mapping[str, Callable[..., Any]]


class Bench:
    """One engine, and a pack ``t`` of functions that programs can call through the real door."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.alive = 0
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.backend = StubBackend({f"t.{name}": function for name, function in self.functions.items()})
        self.executor = ToolExecutor(ToolRegistry([self._pack()]), {"in_process": self.backend})

    def _pack(self) -> Pack:
        return Pack("t", "local", lambda: tools_of_functions("t", self.functions))

    @property
    def functions(self) -> Functions:
        names = ("echo", "slow", "wait", "fail", "mark", "whose")
        return {name: getattr(self, name) for name in names}

    async def echo(self, value: Any = None) -> Any:
        return value

    async def mark(self) -> None:
        self.started.set()

    async def whose(self) -> str:
        return current_run.get()

    async def slow(self, value: Any = None) -> Any:
        await asyncio.sleep(0.1)
        return value

    async def wait(self) -> str:
        self.alive += 1
        self.started.set()
        try:
            await self.release.wait()
            return "released"
        finally:
            self.alive -= 1

    async def fail(self, message: str = "no") -> None:
        raise ValueError(message)

    async def run(self, code: str, **limits: Any) -> Outcome:
        program, allowed = parse_program(dedent(code)), Limits(**limits)
        budget = RunBudget(allowed)
        projects = ProjectProxy({"here": Project.model_validate({"path": "/srv/here"})})
        reach = PackProxy(self.executor, projects, budget, allowed, caller=ME, run_id="1")
        self.engine.refuse(program, reach)
        return await self.engine.run(program, reach, allowed, budget.deadline)

    async def error(self, code: str, **limits: Any) -> RunError:
        with pytest.raises(RunError) as caught:
            await self.run(code, **limits)
        return caught.value

    @property
    def called(self) -> list[str]:
        return [name for name, _ in self.backend.calls]
