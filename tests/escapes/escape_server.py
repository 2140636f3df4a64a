"""The test server: OneTool as it is served, with the corpus's packs, and a side channel that tells what it has seen.

Started as a script, with ``OT_SIDE`` naming the Unix socket of the side channel. ``--no-refusal`` lets every program
through to the portable engine, so that a case cannot pass because it was refused by its text alone; ``--exact`` runs
programs in the exact engine, with ``--no-namespaces`` without bubblewrap.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import escapes.packs.brave as brave
import escapes.packs.vault as vault
from escapes.packs._watch import WATCH
from ot.cli.terminal.event_loop import run_async
from ot.cli.terminal.own_workspace import serve
from ot.config.paths import Paths
from ot.errors import LimitExceeded
from ot.logs import configure_logs
from ot.registry.tool_loader import ToolLoader
from ot.runtime.engines.engine import Constant, Engine, Function, Missing, Place, Reach
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.pack_proxy import PackProxy
from ot.runtime.program import Program
from ot.workspace import Workspace

PACKS = Path(__file__).parent / "packs"
TICK_SECONDS = 0.005


class UnrefusingEngine(PortableEngine):
    """The portable engine without its look at the program's text."""

    def refuse(self, program: Program, reach: Reach) -> None:
        """Refuse nothing."""


def main() -> None:
    """Serve over standard input and output."""
    app = Workspace.alone(Paths.find(), packs=ToolLoader(PACKS, "escapes.packs").packs(), engine=engine_of(sys.argv))
    configure_logs("WARNING", app.picture.loaded.secrets.redact)
    WATCH.app = app
    count_calls()
    threading.Thread(target=SideChannel(os.environ.pop("OT_SIDE")).serve, daemon=True).start()
    run_async(serve_and_tick(app))


def engine_of(options: Sequence[str]) -> Engine:
    """Return the engine that the command line asks for."""
    if "--exact" in options:
        namespaces = "--no-namespaces" not in options
        return ExactEngine(namespaces=namespaces, require_layers=["namespaces"] if namespaces else [])
    return UnrefusingEngine() if "--no-refusal" in options else PortableEngine()


async def serve_and_tick(app: Workspace) -> None:
    """Serve, with a clock on the same loop that shows how long others had to wait."""
    ticking = asyncio.ensure_future(tick())
    try:
        await serve(app)
    finally:
        ticking.cancel()


async def tick() -> None:
    """Note the longest gap between two turns of the loop."""
    while True:
        before = time.monotonic()
        await asyncio.sleep(TICK_SECONDS)
        WATCH.max_gap = max(WATCH.max_gap, time.monotonic() - before - TICK_SECONDS)


def count_calls() -> None:
    """Count what is let through to the host: calls, and look-ups of what is not there."""
    call, member = PackProxy.call, PackProxy.member

    async def counted_call(
        self: PackProxy,
        pack: str,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        line: int | None = None,
        key: str = "",
        inside: Place | None = None,
    ) -> Any:
        WATCH.calls += 1
        try:
            return await call(self, pack, name, args, kwargs, line=line, key=key, inside=inside)
        except LimitExceeded:
            WATCH.calls -= 1
            raise

    def counted_member(self: PackProxy, pack: str, name: str) -> Function | Constant | Missing:
        found = member(self, pack, name)
        WATCH.calls += isinstance(found, Missing)
        return found

    PackProxy.call = counted_call
    PackProxy.member = counted_member


class SideChannel:
    """Answers ``reset`` and ``report`` on a socket that only the harness knows, from a thread of its own."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._untouched = self._touchable()

    def serve(self) -> None:
        """Answer one request a connection, for ever."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._path)
            listener.listen()
            while True:
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.sendall(self._answer(connection.recv(100)))

    def _answer(self, request: bytes) -> bytes:
        if request == b"reset":
            WATCH.reset()
        seen = WATCH.seen() | {"host_state": self._patched()}
        return self._encode(seen).encode()

    # Bound now: a program that could patch json must not be able to hide it.
    _encode = staticmethod(json.JSONEncoder().encode)

    def _patched(self) -> list[str]:
        now = self._touchable()
        return [what for what, before in self._untouched.items() if any(a is not b for a, b in zip(before, now[what]))]  # noqa: B905 - the same keys of the same function

    @staticmethod
    def _touchable() -> dict[str, tuple[object, ...]]:
        return {
            "json_patched": (json.dumps, json.loads),
            "len_patched": (builtins.len, builtins.print),
            "pack_patched": (vault.read, vault.wipe, vault.SECRET, vault.Vault.SECRET, brave.search),
        }


if __name__ == "__main__":
    main()
