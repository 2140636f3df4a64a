"""TeamHost: what every process of a team has, whether it answers requests or carries out background runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from ot.config.load import Loaded
from ot.config.paths import Paths
from ot.host import Host
from ot.state.always_allowed import AlwaysAllowed
from ot.state.open_state import Shared, open_shared, redis_url
from ot.team.background.docket_queue import DocketQueue
from ot.team.logins.team_logins import TeamLogins
from ot.team.people import TeamFront


@dataclass(frozen=True)
class TeamHost:
    """The host, the front that opens everyone's workspace on it, and what the processes share."""

    host: Host
    front: TeamFront
    logins: TeamLogins
    shared: Shared
    queue: DocketQueue | None
    """Where background runs wait for a worker; None: what is shared is not in Redis, and there are no workers."""

    @classmethod
    def open(cls, paths: Paths, operator: Loaded) -> Self:
        """Open it as the settings of *operator* say, in the event loop that it is used in.

        Raises:
            ConfigError: The configuration cannot be used.
        """
        shared, host = open_shared(operator.config.state, operator.secrets), Host(paths)
        host.share(shared)
        queue = _open_queue(operator)
        host.submit_run = queue.submit if queue else None
        front = TeamFront(host, paths, AlwaysAllowed(shared.state, shared.keys))
        logins = TeamLogins(shared.state, shared.keys, front.settings.public_url)
        host.servers.logins = logins.asked
        return cls(host, front, logins, shared, queue)

    async def aclose(self) -> None:
        """Let go of everything."""
        if self.queue:
            await self.queue.aclose()
        await self.front.aclose()
        await self.host.aclose()
        await self.shared.state.aclose()


def _open_queue(operator: Loaded) -> DocketQueue | None:
    state = operator.config.state
    return DocketQueue(redis_url(state, operator.secrets), state.prefix) if state.redis else None
