"""LiveFigures: figures of the running server that are read on its event loop when somebody asks for them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field

from ot.host import Host

logger = logging.getLogger(__name__)

READ_SECONDS = 2.0
"""How long a busy event loop is waited for."""

type Read = Callable[[], float | Awaitable[float]]


@dataclass(frozen=True, slots=True)
class Figure:
    """Numbers of one kind: by the value of a label, or one without."""

    name: str
    text: str
    values: Mapping[str, float]
    label: str = ""
    counts: bool = False
    """Whether it only ever grows."""


@dataclass(slots=True)
class LiveFigures:
    """Asks the parts of a server for their figures; a part that fails is left out."""

    _loop: asyncio.AbstractEventLoop
    _sources: dict[str, tuple[str, Read, bool]] = field(default_factory=dict[str, tuple[str, Read, bool]])
    _hosts: list[Host] = field(default_factory=list[Host])

    def add(self, name: str, text: str, read: Read, *, counts: bool = False) -> None:
        """Ask *read* for the figure *name* from now on, instead of whoever was asked before."""
        self._sources[name] = text, read, counts

    def watch(self, host: Host) -> None:
        """Read the engines, workers and servers of *host* from now on."""
        self._hosts.append(host)

    def read(self) -> Collection[Figure]:
        """Return all figures; called by another thread than the event loop's."""
        asked = time.monotonic()

        async def on_loop() -> tuple[float, list[Figure]]:
            return time.monotonic() - asked, await self._read()

        reading = asyncio.run_coroutine_threadsafe(on_loop(), self._loop)
        try:
            waited, figures = reading.result(READ_SECONDS)
        except TimeoutError:
            reading.cancel()
            waited, figures = READ_SECONDS, list[Figure]()
        text = "How long the event loop took to answer this question"
        return [*figures, Figure("event_loop_wait_seconds", text, {"": waited})]

    async def _read(self) -> list[Figure]:
        figures = [figure for host in self._hosts for figure in await _of_host(host)]
        for name, (text, read, counts) in self._sources.items():
            try:
                found = read()
                number = float(found) if isinstance(found, int | float) else await found
            except Exception as error:  # noqa: BLE001 - one part that fails must not hide all others
                logger.warning("the figure %s could not be read: %s", name, error)
                continue
            figures.append(Figure(name, text, {"": number}, counts=counts))
        return figures


async def _of_host(host: Host) -> list[Figure]:
    processes: Counter[str] = Counter({"ready": 0, "running": 0})
    for engine in tuple(host.engines()):
        details = (await engine.health()).details
        processes.update({state: int(details.get(state, 0)) for state in ("ready", "running")})
    workers = Counter(state.split()[0].rstrip(":") for state in host.workers.states().values())
    servers = Counter(str(state["state"]) for state in host.servers.states().values())
    return [
        Figure("engine_processes", "Processes of engines, by state", processes, "state"),
        Figure("workers", "Packs in workers that were called, by state", workers, "state"),
        Figure("servers", "Proxied servers that were used, by state", servers, "state"),
    ]
