"""A desk for background runs: workspaces over one ledger's file, each as if it were a process of its own."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ot.background.carrying_out import RunCarrier
from ot.config.models import Engines
from ot.config.principal import os_user
from ot.ledger.background_run import BackgroundRun, RunEnd, RunStatus
from ot.ledger.run_book import KeptLedger
from ot.runtime.engines.choice import EngineChoice
from ot.runtime.engines.engine import Engine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.workspace import Workspace
from run_app import paths_in

BEAT_SECONDS = 0.05
LONG_SECONDS = 20.0
ME = os_user()


@dataclass
class Counter:
    """A pack that counts: ``add`` changes something, ``look`` does not and waits until it is let go."""

    added: list[int] = field(default_factory=list[int])
    looked: list[int] = field(default_factory=list[int])
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    slow: asyncio.Event = field(default_factory=asyncio.Event)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    async def add(self, *, n: int) -> int:
        """Add a number."""
        self.added.append(n)
        return n * 2

    async def add_slowly(self, *, n: int) -> int:
        """Add a number, and answer when it is let go."""
        self.added.append(n)
        self.came.set()
        await self.slow.wait()
        return n * 2

    async def look(self, *, n: int = 0) -> int:
        """Change nothing, and answer when the gate is open."""
        self.looked.append(n)
        self.came.set()
        await self.gate.wait()
        return len(self.added)

    def functions(self) -> dict[str, Any]:
        return {"add": self.add, "add_slowly": self.add_slowly, "look": self.look}


CONFIG: Mapping[str, Any] = {"policy": {"read_only": ["counter.look"]}}


@dataclass
class Desk:
    """One process: a workspace, its ledger, and what carries runs out in it."""

    workspace: Workspace
    counter: Counter
    carrier: RunCarrier
    running: asyncio.Task[RunEnd | None] | None = None

    @property
    def book(self) -> KeptLedger:
        return book_of(self.workspace)

    async def add(self, command: str, **more: Any) -> str:
        """Put a run into the book and return its id."""
        more.setdefault("directory", self.workspace.directory)
        run = BackgroundRun(secrets.token_hex(8), ME, command, time.time(), admin=True, **more)
        await self.book.add(run, 100)
        return run.id

    def begin(self, id: str) -> asyncio.Task[RunEnd | None]:
        """Carry the run out beside the test."""
        self.running = asyncio.ensure_future(self.carrier.carry_out(id))
        return self.running

    async def die(self) -> None:
        """End as a process that is killed: nothing more is said of the run, and its lock is free."""
        if self.running:
            self.running.cancel()
            await asyncio.wait((self.running,))
        await self.book.aclose()

    async def status(self, id: str) -> RunStatus:
        found = await self.book.status(ME, id)
        assert found is not None
        return found

    async def until(self, id: str, state: str, starts: int = 1) -> RunStatus:
        """Return the run's status as soon as it has *state*, by that of its *starts*."""
        async with asyncio.timeout(LONG_SECONDS):
            while ((found := await self.status(id)).state, found.starts) != (state, starts):  # noqa: ASYNC110 - the book tells nobody
                await asyncio.sleep(0.01)
        return found


def an_engine(name: str) -> Engine:
    return PortableEngine() if name == "portable" else EngineChoice(Engines.model_validate({"use": name}))


@asynccontextmanager
async def desk(
    directory: Path,
    counter: Counter | None = None,
    *,
    engine: str = "portable",
    config: Mapping[str, Any] | None = None,
    beat_seconds: float = BEAT_SECONDS,
    **options: Any,
) -> AsyncGenerator[Desk]:
    """Yield a process of its own over the files in *directory*; the counter is what the world outside has."""
    counter = counter or Counter()
    paths = paths_in(directory, {**CONFIG, **(config or {})})
    functions = {"counter": counter.functions()}
    workspace = Workspace.alone(paths, engine=an_engine(engine), functions=functions, **options)
    workspace.goes_on = True

    @asynccontextmanager
    async def enter(principal: str) -> AsyncGenerator[Workspace]:
        assert principal == ME
        yield workspace

    made = Desk(workspace, counter, RunCarrier(book_of(workspace), enter, beat_seconds=beat_seconds))
    try:
        yield made
    finally:
        if made.running:
            made.running.cancel()
        await workspace.aclose()


def book_of(workspace: Workspace) -> KeptLedger:
    """Return the ledger of the workspace's process."""
    return workspace.host.ledger(workspace, workspace.picture.loaded.config.ledger)
