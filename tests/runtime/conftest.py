"""A scenario of `run` holds on each engine: its tests run once on each."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable

import pytest

from ot.runtime.engines.engine import Engine
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from run_app import using_engine

ENGINES: dict[str, Callable[[], Engine]] = {"portable": PortableEngine, "exact": lambda: ExactEngine(ready=1)}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give the tests of scenarios that run programs each engine in turn; a file's tests share one of each."""
    marks = metafunc.definition.iter_markers("scenario")
    if inspect.iscoroutinefunction(metafunc.function) and any(
        id.startswith("000-") for mark in marks for id in mark.args
    ):
        metafunc.fixturenames.append("each_engine")
        metafunc.parametrize("each_engine", ENGINES, indirect=True, scope="module")


@pytest.fixture(scope="module")
async def each_engine(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """The name of the engine that a test's workspaces use."""
    if request.param == "exact" and (missing := ExactEngine.missing_here()):
        pytest.skip(missing)
    async with using_engine(ENGINES[request.param]()):
        yield request.param
