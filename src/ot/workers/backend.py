"""Carries calls out in the workers of extension packs."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import anyio.to_thread

from ot.errors import ResultError, ResultTooLarge, ToolError, ToolFailed, ToolUnavailable
from ot.execution.call_context import CallContext
from ot.files.path_guard import PathGuard
from ot.registry.tool import Tool
from ot.workers.pool import WorkerPool
from ot.workers.spec import WorkerSpec
from ot_sdk import tagged

CARRY_OUT = Tool("helper", "carry_out")


class StoreFile(Protocol):
    """Takes a file into the result store."""

    def __call__(self, file: Path, *, tool: str, owner: str) -> str:
        """Return the handle; blocks, so it is called in a thread."""
        ...


class WorkerBackend:
    """One picture's packs, carried out by the pool that outlives it."""

    def __init__(
        self, pool: WorkerPool, specs: Mapping[str, WorkerSpec], store: StoreFile, guard: PathGuard | None = None
    ) -> None:
        """Call the packs of *specs*; a reply too large for the wire goes to *store*, and *guard* opens their files."""
        self._pool = pool
        self._specs = specs
        self._store = store
        self._guard = guard

    async def prepare(self, tool: Tool, context: CallContext) -> None:
        """Install and start what is needed, and tell the caller how it goes."""

        def tell(line: str) -> None:
            if context.told:
                context.told("progress", tool.full_name, {"message": f"{tool.pack}: {line}"})

        await self._pool.prepare(self._spec(tool), tell)

    async def call(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the tool's value."""
        context.guard = self._guard
        result = await self._pool.call(self._spec(tool), tool, arguments, context)
        return await self._value(tool, result, context)

    async def carry_out(self, helper: WorkerSpec, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the value of a bundled tool, for which *helper* knows what to do with these *arguments*."""
        try:
            result = await self._pool.call(helper, CARRY_OUT, arguments, context)
        except ToolFailed as error:
            raise ToolFailed(tool.full_name, error.kind, error.message) from None
        return await self._value(tool, result, context)

    async def _value(self, tool: Tool, result: dict[str, Any], context: CallContext) -> Any:
        if "file" in result:
            raise await self._store_value(tool, result["file"], context)
        try:
            return tagged.decode(result.get("value"))
        except ValueError as error:
            why = f"its worker sent a value that cannot be read: {error}"
            raise ToolFailed(tool.full_name, "ValueError", why) from None

    async def _store_value(self, tool: Tool, file: Path, context: CallContext) -> ToolError:
        try:
            size, handle = await anyio.to_thread.run_sync(
                partial(self._take, file, tool.full_name, context.caller.principal)
            )
        except (OSError, ResultError) as error:
            return ToolFailed(tool.full_name, "ResultTooLarge", f"its large value could not be stored: {error}")
        return ResultTooLarge(tool.full_name, f"{size:,} bytes", handle)

    def _take(self, file: Path, tool: str, owner: str) -> tuple[int, str]:
        try:
            found = file.lstat()
            # A link, or anything but a plain file, would have other content than the worker was able to write.
            if not stat.S_ISREG(found.st_mode):
                raise OSError("it is not a plain file")
            return found.st_size, self._store(file, tool=tool, owner=owner)
        finally:
            with suppress(OSError):  # a directory in its place stays; it goes with the day
                file.unlink(missing_ok=True)

    def _spec(self, tool: Tool) -> WorkerSpec:
        try:
            return self._specs[tool.pack]
        except KeyError:
            raise ToolUnavailable(tool.pack, "it is no longer configured") from None
