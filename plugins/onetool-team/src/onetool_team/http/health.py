"""Health: whether the process lives, and whether a balancer should send it requests."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from onetool_team.http.answers import send_failure, send_json
from onetool_team.http.asgi import AsgiApp, Receive, Scope, Send
from onetool_team.live_configuration import LiveConfiguration
from onetool_team.state.shared_state import SharedState

State = Literal["starting", "ready", "draining", "failed"]
CONFIG_VALID = "1 while the configuration on disk is the one that is used, 0 while that has an error"
NOT_YET = "the server is not ready: {why}. Try again in a moment, or at another replica"


class Readiness:
    """What /readyz says: the state, the engine, and what is worse than it should be."""

    def __init__(self, shared: SharedState | None = None, configuration: LiveConfiguration | None = None) -> None:
        """Begin as a server that starts.

        Without what replicas have *shared*, one still answers most requests. The *configuration* is read again while
        the server runs: a bad edit changes nothing, and is to be seen.
        """
        self.state: State = "starting"
        self.why = "it is starting"
        self.engine = ""
        self.degraded = ""
        self._shared = shared
        self._configuration = configuration

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
        worse = [self.degraded, await self._trouble()]
        found = {
            "status": self.state,
            "engine": self.engine,
            "why": self.why,
            "degraded": "; ".join(filter(None, worse)),
        }
        found["shared_state"] = self._shared.trouble if self._shared else ""
        is_ready = self.state == "ready"
        told = {name: text for name, text in found.items() if text}
        await send_json(send, HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE, told)

    async def _trouble(self) -> str:
        if self._configuration is None:
            return ""
        await self._configuration.refresh()
        return self._configuration.trouble

    def gate(self, app: AsgiApp) -> AsgiApp:
        """Return *app*, answered for while it cannot answer; one that drains still answers those that are in."""

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
