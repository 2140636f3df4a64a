"""TeamLogins: how the users of a team's server log in to the servers behind it."""

from __future__ import annotations

from onetool_team.logins.pending_logins import PendingLogins
from onetool_team.logins.routes import LoginPages
from onetool_team.logins.team_return import TeamReturn
from onetool_team.state.shared_state import SharedState
from onetool_team.state.state_keys import StateKeys
from ot.errors import LoginFailed
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.asked_logins import AskedLogins
from ot.proxied.auth.browser_return import BrowserReturn

SECONDS = 120.0
"""How long a run waits for a person who agreed: no longer than a question waits over HTTP."""
NO_ADDRESS = (
    "this server has no public address to which a browser could come back: its operator has to set http.public_url"
)
ADVICE = "use a client that can show you an address to open (URL elicitation), and run the program again"


class TeamLogins:
    """The logins of one server's users, on whichever replica they are."""

    def __init__(self, state: SharedState, keys: StateKeys, public_url: str, seconds: float = SECONDS) -> None:
        """Keep them in *state*, sealed with *keys*; browsers know the server as *public_url*."""
        self._public_url = public_url.rstrip("/")
        self._pending = PendingLogins(state, keys)
        self.asked = AskedLogins(seconds, self._open_return, ADVICE)
        """Asks whoever uses a server to log in."""
        self.pages = LoginPages(self._pending, self._public_url) if self._public_url else None
        """What answers browsers; none without a public address."""

    def _open_return(self, account: ServerAccount, seconds: float) -> BrowserReturn:
        if not self._public_url:
            raise LoginFailed(account.server, NO_ADDRESS)
        return TeamReturn(self._pending, self._public_url, account, seconds)
