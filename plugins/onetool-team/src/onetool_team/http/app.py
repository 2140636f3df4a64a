"""The application: all layers around the MCP server, from outside in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from onetool_team.http.answers import AnsweredRequests
from onetool_team.http.asgi import AsgiApp
from onetool_team.http.bearer import Bearer
from onetool_team.http.health import Readiness, healthz
from onetool_team.http.host_origin import HostOrigin
from onetool_team.http.request_ids import RequestIds
from onetool_team.http.request_limits import RequestLimits
from onetool_team.http.routes import Route, Routes
from onetool_team.http.run_entrance import RunEntrance
from onetool_team.identity import Authenticator, TokenRefused
from onetool_team.settings import Http
from ot.server.drain import Drain

MCP_PATH = "/mcp"


def as_it_is(app: AsgiApp) -> AsgiApp:
    """Return *app*: a layer that does nothing."""
    return app


@dataclass(frozen=True)
class Edge:
    """What the layers are made with; the last five are for others to fill in."""

    settings: Http
    authenticator: Authenticator
    readiness: Readiness
    answered: Callable[[], int]
    """How many connections have a request that is being answered."""
    challenge: Callable[[TokenRefused | None], str] = lambda refused: "Bearer"
    """Returns what a refusal for want of a good token says in WWW-Authenticate."""
    admission: Callable[[AsgiApp], AsgiApp] = as_it_is
    """Wraps what answers /mcp, once it is known who asks: quotas and queues."""
    drain: Drain = field(default_factory=Drain)
    """What lets no run begin any more once the server is to end."""
    routes: Mapping[str, Route] = field(default_factory=dict[str, Route])
    """Further paths, which are answered without a token."""
    naming: Callable[[AsgiApp], AsgiApp] = RequestIds
    """Wraps everything: names each request, and counts how it was answered."""

    def around(self, mcp: AsgiApp) -> AsgiApp:
        """Return the whole application, in which *mcp* answers /mcp."""
        guarded = Bearer(
            self.readiness.gate(RunEntrance(self.admission(mcp), self.drain)), self.authenticator, self.challenge
        )
        named = {MCP_PATH: Route(guarded, ("POST",)), **self.routes}
        checked = {path: Route(HostOrigin(to.app, self.settings), to.methods) for path, to in named.items()}
        limited = RequestLimits(Routes(checked), self.settings, self.answered)
        # Balancers ask by address, under whatever name: how the server is may be known to everyone who reaches it.
        # No limit is before them: a server that has too much to do lives, and must not be restarted for it.
        probes = {"/healthz": Route(healthz), "/readyz": Route(self.readiness)}
        return self.naming(AnsweredRequests(Routes(probes, limited)))
