"""ServerStart: how a connection to a server comes about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ot.execution.servers.call_trace import CallTrace
from ot.execution.servers.client_roots import ClientRoots
from ot.execution.servers.connect_failure import REFUSED, failure_words, refusal_words
from ot.execution.servers.server_noise import ServerNoise
from ot.execution.servers.server_spec import ServerSpec

if TYPE_CHECKING:
    from ot.execution.servers.live_session import LiveSession

Spawn = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]
Later = Callable[[Coroutine[Any, Any, Any]], None]


class ServerStart:
    """Connects one server as often as it is needed, and remembers which protocol it speaks."""

    def __init__(
        self,
        spec: ServerSpec,
        noise: ServerNoise,
        changed: Callable[[], None],
        spawn: Spawn,
        later: Later,
        roots: ClientRoots,
    ) -> None:
        """Start *spec*; work goes into tasks made by *spawn*, and what has to be cleaned up to *later*."""
        self.mode = "auto"
        self._spec = spec
        self._noise = noise
        self._changed = changed
        self._spawn = spawn
        self._later = later
        self._roots = roots

    async def connected(self) -> LiveSession:
        """Return a connection that knows what its server offers; the caller sets the time for it.

        Raises:
            RuntimeError: It cannot be had; the text says why.
        """
        live = await self._opened(self.mode)
        if not live.modern:
            self.mode = "legacy"  # asking for the newer protocol again would only cost time
        trace = CallTrace()
        try:
            live.listed = await live.ask(trace, lambda _: live.definitions())
        except asyncio.CancelledError:
            self._later(live.close())
            raise
        except Exception as error:
            self._later(live.close())
            raise RuntimeError(_words(live, trace, error)) from error
        return live

    async def _opened(self, mode: str) -> LiveSession:
        from ot.execution.servers.live_session import LiveSession  # noqa: PLC0415 - imports the protocol's library

        live = LiveSession(self._spec, self._noise, self._changed, mode, self._roots)
        # A task of its own: how long the library takes to clean up after a deadline must not delay the deadline.
        opening = self._spawn(live.open())
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.cancel()
            self._later(live.close())
            raise
        except Exception as error:
            self._later(live.close())
            if mode == "auto" and live.process and live.process.ended.is_set():
                # Some servers of the older protocol exit when the first message is not the one that they know.
                return await self._opened("legacy")
            raise RuntimeError(_words(live, live.trace, error)) from error
        return live


def _words(live: LiveSession, trace: CallTrace, error: Exception) -> str:
    if live.process and live.process.ending:
        return live.process.ending_words
    if trace.status in REFUSED:
        return refusal_words(trace.status)
    return (f"it answered HTTP {trace.status}: " if trace.status else "") + failure_words(error)
