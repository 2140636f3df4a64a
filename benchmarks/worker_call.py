"""A warm call to a worker through the whole door, and one to a bare echo process: what budgets.py compares.

The bare process is what the floor costs: one line of JSON there and back over two pipes, matched by id.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from ot.execution.call_context import CallContext
from ot.execution.caller import Caller
from ot.execution.tool_executor import ToolExecutor
from ot.registry.extension_source import Extension
from ot.registry.tool_registry import ToolRegistry
from ot.workers.backend import WorkerBackend
from ot.workers.pool import WorkerPool
from ot.workers.spec import WorkerSpec

PACK = 'def echo(*, nonce: str) -> str:\n    """Return what was given."""\n    return nonce\n'
BARE = """
import json, sys
for line in sys.stdin.buffer:
    message = json.loads(line)
    reply = {"jsonrpc": "2.0", "id": message["id"], "result": {"value": message["params"]["arguments"]["nonce"]}}
    sys.stdout.buffer.write(json.dumps(reply).encode() + b"\\n")
    sys.stdout.buffer.flush()
"""

Call = Callable[[str], Awaitable[Any]]


class BareEcho:
    """A process that answers lines, and a client that matches answers by id."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def start(cls) -> BareEcho:
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-I", "-S", "-c", BARE)
        return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))

    async def __call__(self, nonce: str) -> Any:
        assert self._process.stdin
        number = next(self._numbers)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "id": number, "method": "call", "params": {"arguments": {"nonce": nonce}}}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        return await future

    async def _read(self) -> None:
        assert self._process.stdout
        while line := await self._process.stdout.readline():
            reply = json.loads(line)
            self._waiting.pop(reply["id"]).set_result(reply["result"]["value"])

    async def aclose(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        await self._process.wait()
        await self._reading


def no_store(file: Path, *, tool: str, owner: str) -> str:
    """Keep nothing: no reply is large here."""
    return ""


class Door:
    """The executor, the backend and the pool, as the server puts them together."""

    def __init__(self, state: Path) -> None:
        pack = Extension("bench", state, {"bench_tools.py": PACK.encode()})
        self.pool = WorkerPool(state, os.environ)
        specs = {"bench": WorkerSpec("bench", pack.files, pack.main)}
        backend = WorkerBackend(self.pool, specs, no_store)
        self._executor = ToolExecutor(ToolRegistry([pack.pack()]), {"worker": backend})

    async def __call__(self, nonce: str) -> Any:
        context = CallContext(Caller("bench"), "run", 1, time.monotonic() + 60)
        return (await self._executor.call("bench", "echo", (), {"nonce": nonce}, context))[0]


async def seconds_a_call(call: Call, calls: int) -> float:
    """Return how long one of *calls* calls takes."""
    begun = time.perf_counter()
    for number in range(calls):
        assert str(number) == await call(str(number))
    return (time.perf_counter() - begun) / calls
