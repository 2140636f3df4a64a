"""Health: whether the process lives, and whether a balancer should send it requests."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from ot.state.shared_state import SharedState
from ot.team.http.answers import send_failure, send_json
from ot.team.http.asgi import AsgiApp, Receive, Scope, Send

State = Literal["starting", "ready", "draining", "failed"]
NOT_YET = "the server is not ready: {why}. Try again in a moment, or at another replica"


class Readiness:
    """What /readyz says: the state, the engine, and what is worse than it should be."""

    def __init__(self) -> None:
        """Begin as a server that starts."""
        self.state: State = "starting"
        self.why = "it is starting"
        self.engine = ""
        self.degraded = ""
        self.shared: SharedState | None = None
        """What replicas share: without it, a replica still answers most requests."""

    def ready(self, engine: str, degraded: str = "") -> None:
        """Take requests from now on; a server that is asked to end meanwhile stays what it is."""
        self.engine, self.degraded = engine, degraded
        if self.state == "starting":
            self.state, self.why = "ready", ""

    def stop(self, state: Literal["draining", "failed"], why: str) -> None:
        """Want no more requests."""
        self.state, self.why = state, why

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer /readyz."""
        found = {"status": self.state, "engine": self.engine, "why": self.why, "degraded": self.degraded}
        found["shared_state"] = self.shared.trouble if self.shared else ""
        is_ready = self.state == "ready"
        told = {name: text for name, text in found.items() if text}
        await send_json(send, HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE, told)

    def gate(self, app: AsgiApp) -> AsgiApp:
        """Return *app*, answered for while it cannot answer; one that drains says so itself, run by run."""

        async def gate_request(scope: Scope, receive: Receive, send: Send) -> None:
            if self.state in ("starting", "failed"):
                later = [(b"retry-after", b"1" if self.state == "starting" else b"30")]
                await send_failure(scope, send, HTTPStatus.SERVICE_UNAVAILABLE, NOT_YET.format(why=self.why), later)
            else:
                await app(scope, receive, send)

        return gate_request


async def healthz(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer that the process lives."""
    await send_json(send, HTTPStatus.OK, {"status": "alive"})
