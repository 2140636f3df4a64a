"""Opens what the settings say that replicas share, and the keys that seal it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onetool_team.settings import SharedStore
from onetool_team.state.memory_state import MemoryState
from onetool_team.state.shared_state import SharedState
from ot.config.expand import fill_in
from ot.config.secrets import Secrets
from ot.errors import ConfigError

if TYPE_CHECKING:
    from onetool_team.state.state_keys import StateKeys

NEW_KEY = 'make one with: python -c "import secrets; print(secrets.token_hex(32))"'
SAME_PROTOCOL = {"valkey": "redis", "valkeys": "rediss"}
NO_KEYS = "state.redis needs state.keys: without a secret of your own, whoever can write to Redis could give consent"


@dataclass(frozen=True)
class Shared:
    """What replicas share, and what it is sealed with."""

    state: SharedState
    keys: StateKeys


def open_shared(settings: SharedStore, secrets: Secrets) -> Shared:
    """Return the state and the keys that the settings ask for; without keys, memory has some of its own.

    Raises:
        ConfigError: The settings cannot be used.
    """
    from onetool_team.state.state_keys import StateKeys  # noqa: PLC0415 - imports cryptography

    state = open_state(settings, secrets)
    return Shared(state, open_keys(settings, secrets) or StateKeys.ephemeral())


def open_state(settings: SharedStore, secrets: Secrets) -> SharedState:
    """Return memory, or the Redis that ``state.redis`` names; nothing is connected yet.

    Raises:
        ConfigError: The settings cannot be used.
    """
    if not settings.redis:
        return MemoryState()
    if not settings.keys:
        raise ConfigError(NO_KEYS, hint=NEW_KEY)
    url = redis_url(settings, secrets)
    from onetool_team.state.redis_state import RedisState  # noqa: PLC0415 - a library that only replicas need

    try:
        return RedisState(url, settings.prefix)
    except ValueError:
        raise ConfigError("state.redis is not an address", hint="redis://, rediss:// or unix://") from None


def redis_url(settings: SharedStore, secrets: Secrets) -> str:
    """Return the address of Redis with its secrets in place, or nothing where there is none.

    Raises:
        ConfigError: A secret is missing.
    """
    scheme, colon, rest = fill_in(settings.redis, "state.redis", secrets.get).partition(":")
    return SAME_PROTOCOL.get(scheme, scheme) + colon + rest


def open_keys(settings: SharedStore, secrets: Secrets) -> StateKeys | None:
    """Return the keys of ``state.keys``, or nothing where there are none.

    Raises:
        ConfigError: One of them cannot be used.
    """
    if not settings.keys:
        return None
    from onetool_team.state.state_keys import StateKeys  # noqa: PLC0415 - imports cryptography

    try:
        return StateKeys([fill_in(key, "state.keys", secrets.get) for key in settings.keys])
    except ValueError as error:
        raise ConfigError(f"state.keys: {error}", hint=NEW_KEY) from None
