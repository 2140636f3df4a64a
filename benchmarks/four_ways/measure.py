"""Measures a workspace's servers in the four ways: their definitions, a suite played by script, a suite by models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from benchmarks.four_ways.model_solver import Attempt, ModelSolver
from benchmarks.four_ways.scripted_solver import has_script, solve
from benchmarks.four_ways.suite import BenchSuite, BenchTask
from benchmarks.four_ways.transcript import tokens
from benchmarks.four_ways.ways import CLIENT, WAYS, Way, WayName, open_ways

from ot.config.principal import os_user
from ot.errors import OneToolError, ToolUnavailable
from ot.execution.call_context import CallContext
from ot.execution.caller import Caller
from ot.execution.tool_executor import ToolExecutor
from ot.registry.proxy_target import ProxyTarget
from ot.registry.tool import Tool
from ot.workspace import Workspace


@dataclass(frozen=True)
class Bench:
    """The servers of one workspace, offered in several ways."""

    tools: Mapping[str, Sequence[Tool]]
    """The tools of each server's pack."""
    left_out: Mapping[str, str]
    """Packs of servers that are unavailable, and why."""
    ways: Sequence[Way]
    executor: ToolExecutor
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    """What ``$name`` stands for in tasks."""

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """What each way puts before a model with every request."""
        return [
            {"way": way.name, "listed": len(way.definitions), "definitions": tokens(way.definition_bytes)}
            for way in self.ways
        ]

    async def play(self, suite: BenchSuite) -> list[dict[str, Any]]:
        """Return the figures of each task in each way that it has a script for."""
        await self._start(suite)
        return [
            (await solve(self._fill(task, way), way)).row
            for task in suite.tasks
            for way in self.ways
            if has_script(task, way.name)
        ]

    async def ask(self, suite: BenchSuite, solver: ModelSolver, repeat: int = 1) -> list[Attempt]:
        """Return how a model did at each task in each way, *repeat* times."""
        await self._start(suite)
        return [
            await solver.attempt(self._fill(task, way), way)
            for _ in range(repeat)
            for task in suite.tasks
            for way in self.ways
        ]

    async def _start(self, suite: BenchSuite) -> None:
        """Start the servers that the tasks name: else the first way would pay for it."""
        context = CallContext(Caller(os_user(), client=CLIENT), CLIENT, 0, float("inf"))
        for pack in {tool.partition(".")[0] for task in suite.tasks for tool in task.tools} & self.tools.keys():
            with suppress(OneToolError):  # the task that needs it will say so
                await self.executor.prepare(self.tools[pack][0], context)

    def _fill(self, task: BenchTask, way: Way) -> BenchTask:
        return task.fill({**self.values, "way": way.name})


@asynccontextmanager
async def open_bench(
    workspace: Workspace, names: Sequence[WayName] = WAYS, values: Mapping[str, str] | None = None
) -> AsyncGenerator[Bench]:
    """Yield the bench of the servers of *workspace*, each of which is asked now what it offers."""
    packs = [spec.pack for spec in workspace.picture.servers.values()]
    await workspace.definitions_of(packs)
    tools: dict[str, list[Tool]] = {}
    left_out: dict[str, str] = {}
    for pack in packs:
        try:
            tools[pack] = _server_tools(workspace, pack)
        except ToolUnavailable as error:
            left_out[pack] = str(error)
    async with open_ways(workspace, [tool for some in tools.values() for tool in some], names) as ways:
        executor = workspace.picture.runner.executor
        yield Bench(tools, left_out, ways, executor, {"cwd": str(workspace.paths.cwd), **(values or {})})


def _server_tools(workspace: Workspace, pack: str) -> list[Tool]:
    """Return the tools that a server lists itself, without the functions for its resources and prompts."""
    found = workspace.picture.registry.pack(pack)
    if found.broken:
        raise ToolUnavailable(pack, found.broken)
    return [tool for tool in found.tools.values() if ProxyTarget.of(tool.target).tool]
