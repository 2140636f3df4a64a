"""Which shared state the settings ask for, and with which keys."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml

from checkout import ROOT
from onetool_team.settings import SharedStore
from onetool_team.state.memory_state import MemoryState
from onetool_team.state.open_state import open_keys, open_shared, open_state, redis_url
from onetool_team.state.redis_state import RedisState
from onetool_team.state.state_keys import NotSealed, StateKeys
from ot.config.secrets import Secrets
from ot.errors import ConfigError
from state.redis_process import running_redis

KEY, OLD_KEY = "k" * 32, "o" * 40


def test_without_redis_it_is_memory_and_needs_no_keys() -> None:
    assert isinstance(open_state(SharedStore(), Secrets()), MemoryState)
    assert open_keys(SharedStore(), Secrets()) is None


def test_redis_without_keys_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"state.redis needs state.keys"):
        open_state(SharedStore(redis="redis://localhost"), Secrets())


def test_a_key_that_is_too_short_is_refused_without_being_told() -> None:
    with pytest.raises(ConfigError, match="at least 32 characters") as refused:
        open_keys(SharedStore(keys=("hunter2",)), Secrets())
    assert "hunter2" not in str(refused.value)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"state.redis is not an address"):
        open_state(SharedStore(redis="localhost:6379", keys=(KEY,)), Secrets())


def test_a_secret_that_is_not_set_is_named() -> None:
    with pytest.raises(ConfigError, match=r"state.redis needs REDIS_PASSWORD, which is not set"):
        open_state(SharedStore(redis="redis://:${REDIS_PASSWORD}@localhost", keys=(KEY,)), Secrets())


@pytest.mark.anyio
async def test_the_password_in_the_address_comes_from_the_secrets() -> None:
    with running_redis("--requirepass", "open-sesame", tcp=True) as redis:
        address = redis.url.replace("//", "//:${REDIS_PASSWORD}@")
        state = open_state(SharedStore(redis=address, keys=(KEY,)), Secrets({"REDIS_PASSWORD": "open-sesame"}))
        assert isinstance(state, RedisState)
        await state.set("a", b"1")
        assert await state.get("a") == b"1"
        await state.aclose()


def test_the_settings_that_the_page_shows_can_be_used() -> None:
    page = (ROOT / "docs/how-to/replicas.md").read_text(encoding="utf-8")
    shown = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    secrets = Secrets({"REDIS_PASSWORD": "open-sesame", "STATE_KEY": KEY})
    shared = open_shared(SharedStore(**shown["state"]), secrets)
    assert shared.state.replicas
    assert shared.keys.derive("a") == StateKeys([KEY]).derive("a")


def test_the_address_of_valkey_may_say_so() -> None:
    given = {"valkey://a:1/0": "redis://a:1/0", "valkeys://a": "rediss://a", "unix:///a?db=0": "unix:///a?db=0", "": ""}
    assert {url: redis_url(SharedStore(redis=url), Secrets()) for url in given} == given


def test_the_newest_key_seals_and_older_ones_still_open() -> None:
    sealed = StateKeys([OLD_KEY]).seal("place", b"text")
    assert StateKeys([KEY, OLD_KEY]).unseal("place", sealed) == b"text"
    with pytest.raises(NotSealed):
        StateKeys([KEY]).unseal("place", sealed)
    assert StateKeys([KEY]).unseal("place", StateKeys([KEY, OLD_KEY]).seal("place", b"new")) == b"new"


def test_what_is_sealed_for_one_place_does_not_open_at_another() -> None:
    keys = StateKeys.ephemeral()
    with pytest.raises(NotSealed):
        keys.unseal("login of b", keys.seal("login of a", b"token"))


def test_memory_costs_no_import_of_redis() -> None:
    program = """
import sys
from ot.config.secrets import Secrets
from onetool_team.settings import SharedStore
from onetool_team.state.open_state import open_state
open_state(SharedStore(), Secrets())
sys.exit("redis" in sys.modules or "cryptography" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
