"""TeamParts: what one server over HTTP is made of, for the user of this process or for a team."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

from ot.config.load import load_config
from ot.config.paths import Paths
from ot.config.team_settings import Http
from ot.config.trust import Trust
from ot.errors import ConfigError
from ot.server.front import Front
from ot.server.mcp_server import OneUser
from ot.state.open_state import Shared, redis_url
from ot.team.admission import admitting, open_queue
from ot.team.auth.authenticators import open_authenticator
from ot.team.auth.live_tokens import LiveTokens
from ot.team.auth.resource_metadata import challenge, metadata_answers
from ot.team.auth.token_redaction import without_tokens
from ot.team.fair_queue import FairQueue
from ot.team.http.app import as_it_is
from ot.team.http.asgi import AsgiApp
from ot.team.http.listen_address import ListenAddress
from ot.team.http.loopback_token import LoopbackToken
from ot.team.http.routes import Route
from ot.team.identity import Authenticator, TokenRefused
from ot.team.logins.routes import LoginPages
from ot.team.people import ASK_SECONDS, TeamFront
from ot.team.rate_window import RateWindow
from ot.team.team_host import TeamHost
from ot.workspace import Workspace

PUBLIC = "others can reach {host}, and no one would have to say who they are"
PUBLIC_HINT = "set http.tokens or http.oauth in onetool.yaml, or listen on 127.0.0.1"


@dataclass(frozen=True)
class TeamParts:
    """The parts, and how they end."""

    front: Front
    authenticator: Authenticator
    settings: Http
    redact: Callable[[str], str]
    """Takes every secret out of a line of the log."""
    close: Callable[[], Awaitable[None]]
    url: str = ""
    """What the server is called where ``http.public_url`` does not say it."""
    shared: Shared | None = None
    """What replicas share; None where there is one user."""
    admission: Callable[[AsgiApp], AsgiApp] = as_it_is
    """What lets runs begin in turn."""
    login_pages: LoginPages | None = None
    """Where browsers of users who log in to proxied servers leave from and come back to."""
    queue: FairQueue | None = None
    """Those that wait for their turn; None where there is one user."""

    def challenge(self, refusal: TokenRefused | None) -> str:
        """Return what tells a client how to get a token."""
        return challenge(self.settings, self.url, refusal)

    @property
    def routes(self) -> dict[str, Route]:
        """The paths that are answered without a token."""
        found = metadata_answers(self.settings, self.url)
        pages = self.login_pages.routes() if self.login_pages else {}
        return {
            **{path: Route(cast("AsgiApp", answer), ("GET",)) for path, answer in found.items()},
            **{path: Route(app, methods) for path, (app, methods) in pages.items()},
        }

    @property
    def token(self) -> LoopbackToken | None:
        """The token that this server made itself, if it did."""
        return self.authenticator if isinstance(self.authenticator, LoopbackToken) else None

    def start(self) -> None:
        """Begin what goes on beside the requests."""
        if isinstance(self.front, TeamFront):
            self.front.start()

    async def aclose(self) -> None:
        """Let go of everything."""
        await self.authenticator.aclose()
        await self.close()


def open_parts(paths: Paths, address: ListenAddress, url: str, *, trust_project: bool = False) -> TeamParts:
    """Return the parts of a server at *address*: for a team where the configuration says who may use it.

    *url* is what the server is called where ``http.public_url`` does not say it.

    Raises:
        ConfigError: The configuration cannot be used, or others could reach the server without saying who they are.
    """
    load = partial(load_config, paths, Trust(paths.global_dir))
    operator = load()
    config = operator.config
    authenticator = open_authenticator(
        config.http, operator.secrets, url, LiveTokens(operator, load), config.security.internal_hosts
    )
    if authenticator is None:
        return _of_one_user(paths, address, trust_project=trust_project)
    team = TeamHost.open(paths, operator)
    address_of_redis, prefix = redis_url(config.state, operator.secrets), config.state.prefix
    window = RateWindow(address_of_redis, prefix, lambda: bool(team.shared.state.trouble), team.shared.keys.hide)
    return _of_a_team(team, authenticator, window, url)


def _of_one_user(paths: Paths, address: ListenAddress, *, trust_project: bool) -> TeamParts:
    if not address.is_loopback:
        raise ConfigError(PUBLIC.format(host=address.host), hint=PUBLIC_HINT)
    token = LoopbackToken.of(paths.global_dir)
    workspace = Workspace.alone(paths, trust_project=trust_project)
    workspace.goes_on = True
    workspace.most_ask_seconds = ASK_SECONDS

    def redact(text: str) -> str:
        return workspace.picture.loaded.secrets.redact(text)  # asked anew: a reload may bring new secrets

    settings = workspace.picture.loaded.config.http
    return TeamParts(OneUser(workspace, connection=""), token, settings, without_tokens(redact), workspace.aclose)


def _of_a_team(team: TeamHost, authenticator: Authenticator, window: RateWindow, url: str) -> TeamParts:
    front, pages = team.front, team.logins.pages

    async def close() -> None:
        await team.aclose()
        await window.aclose()

    redact, queue = without_tokens(team.host.redaction.redact), open_queue(front)
    admission = admitting(front, window, queue)
    return TeamParts(front, authenticator, front.settings, redact, close, url, team.shared, admission, pages, queue)
