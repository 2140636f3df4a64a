"""TeamReturn: the way of one login through the pages of a team's server."""

from __future__ import annotations

import logging
from dataclasses import replace
from types import TracebackType
from typing import Self

from onetool_team.logins.pending_logins import PendingLogins
from onetool_team.state.shared_state import StateUnavailable
from onetool_team.state.state_keys import NotSealed
from ot.errors import LoginFailed
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.browser_return import CallbackAnswer, Invitation

logger = logging.getLogger(__name__)

CALLBACK = "/oauth/callback"
START = "/oauth/start"
UNREACHABLE = "what the replicas of this server share cannot be reached: try again later"


class TeamReturn:
    """Waits, in the process of the run, for what a browser brings back to any replica."""

    def __init__(self, logins: PendingLogins, public_url: str, account: ServerAccount, seconds: float) -> None:
        """Send the browser of whom *account* belongs to from *public_url*, and wait *seconds* for it."""
        self.account = replace(account, callback=public_url + CALLBACK)
        self._logins = logins
        self._public_url = public_url
        self._seconds = seconds
        self._link = ""
        self._state = ""

    async def __aenter__(self) -> Self:
        """Begin."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tell the page that waits how it ended; a link that was not used is worth nothing from now on."""
        if not self._link:
            return
        why = (str(error) or "it was given up") if error else ""
        try:
            await self._logins.end(self._link, self._state, why)
        except StateUnavailable as unavailable:
            logger.warning("the end of a login could not be told: %s", unavailable)

    async def invite(self, address: str) -> Invitation:
        """Return the link of a page that leads to *address*.

        Raises:
            LoginFailed: The page could not find it.
        """
        self._state = CallbackAnswer.from_address(address).state
        try:
            self._link, code = await self._logins.begin(self.account.server, self.account.principal, address)
        except StateUnavailable:
            raise LoginFailed(self.account.server, UNREACHABLE) from None
        words = f"Open the address, enter the code {code} there, and log in. Show the code to nobody."
        return Invitation(f"{self._public_url}{START}?login={self._link}", words)

    async def receive(self, state: str) -> CallbackAnswer:
        """Return the answer for *state*.

        Raises:
            TimeoutError: None came in time.
            LoginFailed: It cannot be known.
        """
        try:
            return await self._logins.answer(state, self._seconds)
        except (StateUnavailable, NotSealed):
            raise LoginFailed(self.account.server, UNREACHABLE) from None
