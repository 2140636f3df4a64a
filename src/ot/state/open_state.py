"""Opens what the settings say that replicas share, and the keys that seal it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ot.config.expand import REFERENCE
from ot.config.secrets import Secrets
from ot.config.team_settings import SharedStore
from ot.errors import ConfigError
from ot.state.memory_state import MemoryState
from ot.state.shared_state import SharedState

if TYPE_CHECKING:
    from ot.state.redis_state import RedisState
    from ot.state.state_keys import StateKeys

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
    from ot.state.state_keys import StateKeys  # noqa: PLC0415 - imports cryptography

    state = open_state(settings, secrets)
    return Shared(state, open_keys(settings, secrets) or StateKeys.ephemeral())


def open_state(settings: SharedStore, secrets: Secrets) -> SharedState:
    """Return memory, or Redis where ``state.redis`` names one; nothing is connected yet.

    Raises:
        ConfigError: The settings cannot be used.
    """
    return open_redis(settings, secrets) if settings.redis else MemoryState()


def open_redis(settings: SharedStore, secrets: Secrets) -> RedisState:
    """Return the Redis that ``state.redis`` names; nothing is connected yet.

    Raises:
        ConfigError: The settings cannot be used.
    """
    if not settings.keys:
        raise ConfigError(NO_KEYS, hint=NEW_KEY)
    url = redis_url(settings, secrets)
    try:
        from ot.state.redis_state import RedisState  # noqa: PLC0415 - a library that only replicas need

        return RedisState(url, settings.prefix)
    except ImportError:
        raise ConfigError("state.redis needs the extra 'team'", hint="install onetool-run[team]") from None
    except ValueError:
        raise ConfigError("state.redis is not an address", hint="redis://, rediss:// or unix://") from None


def redis_url(settings: SharedStore, secrets: Secrets) -> str:
    """Return the address of Redis with its secrets in place, or nothing where there is none.

    Raises:
        ConfigError: A secret is missing.
    """
    scheme, colon, rest = _fill_in(settings.redis, "state.redis", secrets).partition(":")
    return SAME_PROTOCOL.get(scheme, scheme) + colon + rest


def open_keys(settings: SharedStore, secrets: Secrets) -> StateKeys | None:
    """Return the keys of ``state.keys``, or nothing where there are none.

    Raises:
        ConfigError: One of them cannot be used.
    """
    if not settings.keys:
        return None
    from ot.state.state_keys import StateKeys  # noqa: PLC0415 - imports cryptography

    try:
        return StateKeys([_fill_in(key, "state.keys", secrets) for key in settings.keys])
    except ValueError as error:
        raise ConfigError(f"state.keys: {error}", hint=NEW_KEY) from None


def _fill_in(text: str, setting: str, secrets: Secrets) -> str:
    """Return *text* with its secrets in place."""

    def value(found: re.Match[str]) -> str:
        known = secrets.get(found.group(1)) or found.group(2)
        if known is None:
            raise ConfigError(f"{setting} needs {found.group(1)}, which is not set", hint="add it to secrets.yaml")
        return known

    return REFERENCE.sub(value, text)
