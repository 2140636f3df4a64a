"""TeamHost: what every process of a team has, whether it answers requests or carries out background runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from onetool_team.ledger.open_postgres import open_postgres
from onetool_team.live_configuration import LiveConfiguration
from onetool_team.logins.team_logins import TeamLogins
from onetool_team.operating.desk import OperatorDesk
from onetool_team.people import TeamFront
from onetool_team.postgres.permissions import PostgresPermissions
from onetool_team.postgres.team_rows import open_team_rows
from onetool_team.replica_sharing import ReplicaSharing
from onetool_team.roster.redis_roster import open_roster
from onetool_team.roster.roster import RosterWriter
from onetool_team.settings import SharedStore
from onetool_team.state.always_allowed import AlwaysAllowed
from onetool_team.state.open_state import Shared, open_shared
from onetool_team.state.run_bell import RunBell
from ot.host import Host
from ot.proxied.catalogue_files import FOLDER as SERVERS


@dataclass(frozen=True)
class TeamHost:
    """The host, the front that opens everyone's workspace on it, and what the processes share."""

    host: Host
    front: TeamFront
    logins: TeamLogins
    shared: Shared
    roster: RosterWriter
    """Notes who was here."""
    desk: OperatorDesk
    """Answers the operator."""
    bell: RunBell | None
    """Tells workers that runs wait in PostgreSQL; None: nothing is there, and there are no workers."""

    @classmethod
    def open(cls, configuration: LiveConfiguration) -> Self:
        """Open it as the *configuration* says, in the event loop that it is used in.

        Raises:
            ConfigError: The configuration cannot be used.
        """
        operator = configuration.loaded
        settings = operator.config.section(SharedStore)
        shared, host = open_shared(settings, operator.secrets), Host(configuration.paths)
        host.say_trouble = lambda: shared.state.trouble
        postgres = open_postgres(settings, operator.secrets)
        rows = open_team_rows(settings, operator.secrets, shared.keys)
        if shared.state.replicas:
            host.sharing = ReplicaSharing(shared, postgres, rows, configuration.paths.global_dir / SERVERS)
        bell = RunBell(shared.state) if postgres else None
        host.submit_run = bell.submit if bell else None
        book = PostgresPermissions(rows) if rows else AlwaysAllowed(shared.state, shared.keys)
        front = TeamFront(host, configuration, book)
        roster = RosterWriter(open_roster(shared.state, shared.keys, configuration.paths.global_dir))
        desk = OperatorDesk(host, front, roster, book)
        logins = TeamLogins(shared.state, shared.keys, front.settings.public_url)
        host.servers.logins = logins.asked
        return cls(host, front, logins, shared, roster, desk, bell)

    async def aclose(self) -> None:
        """Let go of everything."""
        await self.front.aclose()
        await self.roster.aclose()
        await self.host.aclose()
        await self.shared.state.aclose()
