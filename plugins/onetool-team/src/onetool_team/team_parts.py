"""TeamParts: what one server over HTTP is made of, for the user of this process or for a team."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from onetool_team.admission import admitting, open_queue
from onetool_team.auth.authenticators import TokenChecks, open_authenticator
from onetool_team.auth.live_tokens import LiveTokens
from onetool_team.auth.resource_metadata import metadata_answers
from onetool_team.auth.token_redaction import without_tokens
from onetool_team.fair_queue import FairQueue
from onetool_team.http.app import as_it_is
from onetool_team.http.asgi import AsgiApp
from onetool_team.http.listen_address import ListenAddress
from onetool_team.http.loopback_token import LoopbackToken
from onetool_team.http.routes import Route
from onetool_team.identity import Authenticator
from onetool_team.live_configuration import LiveConfiguration
from onetool_team.people import ASK_SECONDS
from onetool_team.rate_window import RateWindow
from onetool_team.settings import Http, SharedStore
from onetool_team.state.open_state import redis_url
from onetool_team.team_host import TeamHost
from ot.config.paths import Paths
from ot.errors import ConfigError
from ot.server.front import Front
from ot.server.mcp_server import OneUser
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
    aclose: Callable[[], Awaitable[None]]
    """Lets go of everything."""
    url: str = ""
    """What the server is called where ``http.public_url`` does not say it."""
    admission: Callable[[AsgiApp], AsgiApp] = as_it_is
    """What lets runs begin in turn."""
    queue: FairQueue | None = None
    """Those that wait for their turn; None where there is one user."""
    team: TeamHost | None = None
    """What every process of a team has; None where there is one user."""

    @property
    def routes(self) -> dict[str, Route]:
        """The paths that are answered without a token."""
        pages = self.team.logins.pages if self.team else None
        return metadata_answers(self.settings, self.url) | (pages.routes() if pages else {})

    @property
    def token(self) -> LoopbackToken | None:
        """The token that this server made itself, if it did."""
        return self.authenticator if isinstance(self.authenticator, LoopbackToken) else None

    def start(self) -> None:
        """Begin what goes on beside the requests."""
        if self.team:
            self.team.front.start()
            self.team.roster.start()


def open_parts(paths: Paths, address: ListenAddress, url: str, *, trust_project: bool = False) -> TeamParts:
    """Return the parts of a server at *address*: for a team where the configuration says who may use it.

    *url* is what the server is called where ``http.public_url`` does not say it.

    Raises:
        ConfigError: The configuration cannot be used, or others could reach the server without saying who they are.
    """
    configuration = LiveConfiguration(paths)
    operator, config = configuration.loaded, configuration.loaded.config
    authenticator = open_authenticator(
        config.section(Http), operator.secrets, url, LiveTokens(configuration), config.security.internal_hosts
    )
    if authenticator is None:
        return _of_one_user(paths, address, trust_project=trust_project)
    team = TeamHost.open(configuration)
    state = config.section(SharedStore)
    address_of_redis, prefix = redis_url(state, operator.secrets), state.prefix
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

    settings = workspace.picture.loaded.config.section(Http)
    return TeamParts(OneUser(workspace, connection=""), token, settings, without_tokens(redact), workspace.aclose)


def _of_a_team(team: TeamHost, authenticator: TokenChecks, window: RateWindow, url: str) -> TeamParts:
    front, queue = team.front, open_queue(team.front)

    async def close() -> None:
        await authenticator.aclose()
        await team.aclose()
        await window.aclose()

    redact, admission = without_tokens(team.host.redaction.redact), admitting(front, window, queue)
    return TeamParts(front, authenticator, front.settings, redact, close, url, admission, queue, team)
