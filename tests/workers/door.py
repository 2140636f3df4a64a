"""Door: the executor, the backend and the pool in the test's own process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from callers import ME
from ot.execution.call_context import CallContext
from ot.execution.tool_executor import ToolExecutor
from ot.processes.child_environ import worker_environ
from ot.registry.extension_source import Extension
from ot.registry.tool_registry import ToolRegistry
from ot.workers.backend import WorkerBackend
from ot.workers.pool import WorkerPool
from ot.workers.spec import WorkerSpec
from ot.workers.worker import Worker

PACKS = Path(__file__).parent / "packs"
UNLIMITED = 10**9


def source_of(pack: str) -> str:
    """Return the source of one of the packs in this directory."""
    return (PACKS / f"{pack}_tools.py").read_text(encoding="utf-8")


def extension(name: str, source: str) -> Extension:
    """Return a pack of one file."""
    return Extension(name, Path("/nowhere"), {f"{name}_tools.py": source.encode()})


class Door:
    """Calls packs by ``await door("pack.tool", argument=...)``; deaths are not counted unless asked for."""

    def __init__(
        self,
        state: Path,
        packs: Iterable[Extension] | None = None,
        *,
        deaths: int = UNLIMITED,
        seconds: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
        **spec: Any,
    ) -> None:
        """Serve *packs*, whose workers are made with *spec*."""
        found = list(packs or [extension(name, source_of(name)) for name in ("calm", "faulty")])
        self.pool = WorkerPool(state, os.environ, clock=clock, deaths=deaths)
        spec = {"environ": worker_environ(os.environ), **spec}
        self.specs = {pack.name: WorkerSpec(pack.name, pack.files, pack.main, **spec) for pack in found}
        self.stored: list[int] = []
        self.executor = ToolExecutor(
            ToolRegistry(pack.pack() for pack in found),
            {"worker": WorkerBackend(self.pool, self.specs, self._store)},
            call_seconds=seconds,
        )

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        """Return the tool's value."""
        pack, _, name = tool.partition(".")
        context = CallContext(ME, "run", 1, time.monotonic() + 600)
        return (await self.executor.call(pack, name, (), arguments, context))[0]

    def workers(self, pack: str) -> list[Worker]:
        """Return the workers of *pack* that the pool would use."""
        return [worker for worker in self.pool._all() if worker.spec.pack == pack]

    def pid(self, pack: str) -> int:
        """Return the process id of the pack's only worker."""
        (worker,) = self.workers(pack)
        return worker._process.pid

    def _store(self, file: Path, *, tool: str, owner: str) -> str:
        self.stored.append(file.stat().st_size)
        return f"handle-{len(self.stored)}"

    async def aclose(self) -> None:
        """End all workers."""
        await self.pool.aclose()


def open_files() -> int:
    """Return how many descriptors this process has."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a Path would open one
