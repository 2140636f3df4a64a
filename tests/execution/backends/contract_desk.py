"""One pack behind each backend: in this process, in a worker, and at a real server on another host."""

from __future__ import annotations

import math
import secrets
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from callers import ME
from http_server import CONFIG, HttpServer
from onetool_team.http.loopback_token import FILE
from ot.execution.call_context import CallContext
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.run_events import Progress, RunEvent
from ot.workspace import Workspace
from run_app import paths_in, running_app

PACK = "station"
BACKENDS = ("in_process", "worker", "remote")
APART = ("worker", "remote")
"""Those whose tools can tell of their progress and print, and are read anew when their file changes."""
MIB = 1 << 20
THERE = CONFIG + "limits: {value_bytes: 8388608}\n"

SOURCE = '''
    """A pack that is the same wherever it is."""

    import asyncio
    from datetime import datetime
    from pathlib import Path
    from typing import Any, Literal

    pack = "station"
    __all__ = ["forecast", "echo", "fail", "wait", "meet", "much", "lines", "tell", "wipe", "key", "look"]
    __ot_read_only__ = ["forecast", "look"]
    __ot_destructive__ = ["wipe"]
    COUNT = []


    class ProbeError(Exception):
        """An error that only this pack knows."""


    def forecast(city: str, days: int = 3, *, units: Literal["C", "F"] = "C", at: datetime | None = None) -> list[dict]:
        """Tell the weather.

        It is always the same.

        Args:
            city: Where.
            days: For how many days.
            units: Celsius or Fahrenheit.
        """
        return [{"city": city, "day": day, "units": units} for day in range(days)]


    def echo(value: Any) -> Any:
        """Return what was given."""
        return value


    def fail(kind: str) -> None:
        """Raise an exception of that kind."""
        if kind == "probe":
            raise ProbeError("the probe is broken")
        raise {"value": ValueError, "key": KeyError, "file": FileNotFoundError}[kind]("no such thing")


    async def wait(directory: str) -> None:
        """Wait, and write down how that ends."""
        try:
            Path(directory, "begun").touch()
            await asyncio.sleep(600)
        finally:
            Path(directory, "ended").touch()


    async def meet(count: int) -> int:
        """Return when as many calls are under way."""
        COUNT.append(1)
        while len(COUNT) < count:
            await asyncio.sleep(0.005)
        return len(COUNT)


    def much(size: int) -> bytes:
        """Return so many bytes."""
        return bytes(range(256)) * (size // 256)


    def lines(count: int) -> list[str]:
        """Return so many lines."""
        return ["y" * 1000] * count


    def tell(steps: int) -> str:
        """Tell of some steps."""
        import ot_sdk

        print("so it begins")
        for step in range(steps):
            ot_sdk.progress(step, steps, f"step {step}")
        return "told"


    def key() -> str:
        """Return what names this call."""
        import ot_sdk

        return ot_sdk.idempotency_key()


    def look() -> str:
        """Return the same, of a call that changes nothing."""
        return key()


    def wipe() -> str:
        """Delete all."""
        return "wiped"
'''


class Desk:
    """A workspace that has the pack, and the door to it."""

    def __init__(self, app: Workspace, rewrite: Callable[[str], None]) -> None:
        self.app = app
        self.rewrite = rewrite
        """Puts another source in the place of the pack's."""

    async def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Return what a tool of the pack returns, through the door."""
        await self.app.definitions_of([PACK])
        context = CallContext(ME, secrets.token_hex(8), 1, math.inf)
        value, _ = await self.app.picture.runner.executor.call(PACK, name, args, kwargs, context)
        return value

    async def progress(self, command: str) -> list[tuple[Any, Any, str]]:
        """Return what is told of a run's progress."""
        told: list[RunEvent] = []
        reply = await self.app.run(command, tell=told.append)
        assert not reply.is_error, reply.text
        return [(event.done, event.total, event.message) for event in told if isinstance(event, Progress)]


def put_pack(user: Path, source: str) -> None:
    """Write the pack into a user's directory."""
    file = user / "tools" / PACK / f"{PACK}_tools.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dedent(source), encoding="utf-8")


def start_host(root: Path, *, address: str = "0", token_of: HttpServer | None = None) -> HttpServer:
    """Return a host that offers the pack, and nothing else; it knows the token of another, where that is given."""
    user = root / "home" / ".onetool"
    put_pack(user, SOURCE)
    if token_of:
        shutil.copy(token_of.place.home / ".onetool" / FILE, user / FILE)
    return HttpServer.start(root, THERE, "--packs", PACK, address=address)


def settings_for(*urls: str, token: str = "", **more: Any) -> dict[str, Any]:
    """Return the configuration with which the pack at *urls* is used."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    where = {"url": urls[0]} if len(urls) == 1 else {"urls": urls}
    return {"servers": {PACK: {**where, "headers": headers}}, "policy": {"allow": [f"{PACK}.*"]}, **more}


@asynccontextmanager
async def desk_of(
    kind: str, directory: Path, host: HttpServer, config: Mapping[str, Any] | None = None
) -> AsyncGenerator[Desk]:
    """Yield a desk whose pack is behind a backend of that *kind*."""
    allowed = {"policy": {"allow": [f"{PACK}.*"]}, **(config or {})}
    if kind == "in_process":
        async with running_app(directory, {PACK: SOURCE}, allowed) as app:
            yield Desk(app, lambda source: None)
        return
    paths = paths_in(directory, settings_for(host.url, token=host.token, **allowed) if kind == "remote" else allowed)
    user = host.place.home / ".onetool" if kind == "remote" else paths.global_dir
    put_pack(user, SOURCE)
    app = Workspace.alone(paths, engine=PortableEngine())
    try:
        yield Desk(app, lambda source: put_pack(user, source))
    finally:
        await app.aclose()
