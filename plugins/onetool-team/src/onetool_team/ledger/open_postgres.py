"""Opens the PostgreSQL that the settings name."""

from __future__ import annotations

from onetool_team.ledger.postgres_sessions import ANSWER_SECONDS, PostgresSessions
from onetool_team.settings import SharedStore
from onetool_team.state.open_state import NEW_KEY
from ot.config.expand import fill_in
from ot.config.secrets import Secrets
from ot.errors import ConfigError

NOT_ALONE = "state.postgres needs state.redis and state.keys, as replicas and workers have them"


def open_postgres(
    settings: SharedStore, secrets: Secrets, answer_seconds: float = ANSWER_SECONDS
) -> PostgresSessions | None:
    """Return the PostgreSQL that ``state.postgres`` names, if it does; nothing is connected yet.

    Raises:
        ConfigError: The settings cannot be used.
    """
    if not settings.postgres:
        return None
    if not settings.redis or not settings.keys:
        raise ConfigError(NOT_ALONE, hint=NEW_KEY if settings.redis else "set state.redis")
    try:
        url = fill_in(settings.postgres, "state.postgres", secrets.get)
        return PostgresSessions(url, settings.prefix, answer_seconds=answer_seconds)
    except ValueError as error:
        hint = "postgresql:// in state.postgres, and a short state.prefix"
        raise ConfigError(f"state.postgres cannot be used: {error}", hint=hint) from None
