"""LoopbackCallback: the address on this machine that the browser is sent back to."""

from __future__ import annotations

from types import TracebackType

from ot.servers.auth.login import CallbackAnswer


class LoopbackCallback:
    """Listens on 127.0.0.1 while it is entered; takes one answer for the state that is waited for."""

    def __init__(self, port: int, seconds: float) -> None:
        """Listen on *port*; wait for no longer than *seconds*."""

    async def __aenter__(self) -> LoopbackCallback:
        """Begin to listen.

        Raises:
            OSError: The port is taken.
        """
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""

    async def receive(self, state: str) -> CallbackAnswer:
        """Return the answer for *state*; others are refused.

        Raises:
            TimeoutError: None came in time.
        """
        raise NotImplementedError
