"""The house rules of the tests hold in the tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def early_home() -> Path:
    return Path.home()


def test_each_test_has_an_empty_home_of_its_own(home: Path, homes: Path) -> None:
    assert home == Path.home() == Path("~").expanduser()
    assert homes == home.parent
    assert not list(home.iterdir())


def test_a_fixture_that_outlives_a_test_does_not_see_the_real_home_either(early_home: Path, homes: Path) -> None:
    assert homes == early_home


def test_no_setting_of_onetool_comes_in_from_outside() -> None:
    assert not [name for name in os.environ if name.startswith(("OT_", "ONETOOL_"))]
    assert not {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"} & set(os.environ)


@given(st.integers())
def test_laws_are_tried_the_same_way_each_time(_: int) -> None:
    profile = settings()
    assert profile.derandomize
    assert profile.deadline is None


@pytest.mark.anyio
async def test_async_tests_run_on_one_backend(anyio_backend: str) -> None:
    assert anyio_backend == "asyncio"
