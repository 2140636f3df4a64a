"""TeamHost: what every process of a team has, whether it answers requests or carries out background runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from ot.config.paths import Paths
from ot.host import Host
from ot.state.always_allowed import AlwaysAllowed
from ot.state.open_state import Shared
from ot.team.logins.team_logins import TeamLogins
from ot.team.people import TeamFront


@dataclass(frozen=True)
class TeamHost:
    """The host, the front that opens everyone's workspace on it, and what the processes share."""

    host: Host
    front: TeamFront
    logins: TeamLogins
    shared: Shared

    @classmethod
    def open(cls, paths: Paths, shared: Shared) -> Self:
        """Open it, in the event loop that it is used in.

        Raises:
            ConfigError: The configuration cannot be used.
        """
        host = Host(paths)
        host.share(shared)
        front = TeamFront(host, paths, AlwaysAllowed(shared.state, shared.keys))
        logins = TeamLogins(shared.state, shared.keys, front.settings.public_url)
        host.servers.logins = logins.asked
        return cls(host, front, logins, shared)

    async def aclose(self) -> None:
        """Let go of everything."""
        await self.front.aclose()
        await self.host.aclose()
        await self.shared.state.aclose()
