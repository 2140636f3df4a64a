"""A scenario of `run` holds on each engine: its tests run once on each."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from ot.runtime.engines.engine import Engine
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from run_app import using_engine

ENGINES: dict[str, Callable[[], Engine]] = {"portable": PortableEngine, "exact": lambda: ExactEngine(ready=1)}


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(obj: object) -> None:
    """Let the tests of these scenarios that run programs use `each_engine`."""
    marks = [mark for mark in getattr(obj, "pytestmark", []) if mark.name == "scenario"]
    if inspect.iscoroutinefunction(obj) and any(id.startswith("000-") for mark in marks for id in mark.args):
        pytest.mark.usefixtures("each_engine")(obj)


@pytest.fixture(scope="module", params=ENGINES)
async def shared_engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    """One of each engine for a file's tests."""
    if request.param == "exact" and (missing := ExactEngine.missing_here()):
        pytest.skip(missing)
    engine = ENGINES[request.param]()
    yield engine
    await engine.aclose()


@pytest.fixture
def each_engine(shared_engine: Engine) -> Iterator[str]:
    """The name of the engine that this test's workspaces use."""
    with using_engine(shared_engine):
        yield shared_engine.name
