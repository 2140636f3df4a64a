"""Where the user's own directory is, whatever HOME says."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from ot.config.paths import Paths
from ot.errors import ConfigError


def test_an_empty_home_is_none_and_the_list_of_users_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")
    assert Paths.find().global_dir == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".onetool"


def test_a_home_that_is_no_absolute_path_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "somewhere")
    with pytest.raises(ConfigError, match="HOME is not an absolute path"):
        Paths.find()
