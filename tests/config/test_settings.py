"""The settings are few, and one that is gone says what holds instead."""

from __future__ import annotations

import pytest

from config.desk import Desk
from ot.config.problems import FIXED
from ot.config.shape import all_keys
from ot.errors import ConfigError

OF_TEAM_AND_CHAT = ("chat", "http", "output.store", "state", "telemetry")
MOST = 150
"""More than these nobody reads before the first edit of a configuration."""


def test_the_server_itself_has_few_settings() -> None:
    names = [key.name for key in all_keys()]
    ours = [name for name in names if not any(f"{name}.".startswith(f"{part}.") for part in OF_TEAM_AND_CHAT)]
    assert len(ours) <= MOST


@pytest.mark.parametrize("name", FIXED)
def test_what_was_a_setting_says_what_holds_instead(desk: Desk, name: str) -> None:
    section, _, key = name.partition(".")
    desk.write_user(f"{section}: {{{key}: 1}}\n")
    with pytest.raises(ConfigError, match=FIXED[name]):
        desk.load()
