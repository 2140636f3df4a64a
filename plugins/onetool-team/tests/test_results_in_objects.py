"""Runs whose large results go to an object store: stored by one server, read by another, missed by nobody."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ot.execution.caller import Caller
from ot.host import Host
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.workspace import Workspace
from run_app import paths_in

pytestmark = pytest.mark.anyio

LARGE = "[{'number': n, 'text': 'x' * 50} for n in range(2000)]"
ANNA, BERT = Caller("issuer|anna"), Caller("issuer|bert")


@asynccontextmanager
async def replica(directory: Path, store: dict[str, Any]) -> AsyncGenerator[tuple[Workspace, Workspace]]:
    """Yield the workspaces of two people on one host, whose results go to *store*."""
    paths = paths_in(directory, {"output": {"store": store}})
    host = Host(paths, engine=PortableEngine())
    async with AsyncExitStack() as stack:
        stack.push_async_callback(host.aclose)
        both = Workspace(host, paths), Workspace(host, paths)
        for workspace in both:
            stack.push_async_callback(workspace.aclose)
        yield both


def handle_in(text: str) -> str:
    found = re.search(r'"handle":"([\w-]+)"', text)
    assert found, text
    return found[1]


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    found = [tmp_path / "one", tmp_path / "two"]
    for place in found:
        place.mkdir()
    return found


async def test_a_result_is_read_on_another_replica_by_whoever_stored_it_alone(
    tmp_path: Path, places: list[Path]
) -> None:
    store = {"url": f"file://{tmp_path}/objects"}
    async with replica(places[0], store) as (one, _), replica(places[1], store) as (two, other):
        handle = handle_in((await one.run(LARGE, ANNA)).texts[0])
        page = f"ot.result(handle='{handle}', path='[1999].number')"
        assert (await two.run(page, ANNA)).texts[0] == "1999"
        refused = await other.run(page, BERT)
        assert refused.is_error
        assert "not found" in refused.texts[0]


async def test_a_store_that_is_not_there_is_no_error_of_the_run(places: list[Path]) -> None:
    keys = {"access_key_id": "a", "secret_access_key": "b", "region": "x"}
    store = {"url": "s3://results", "endpoint": "http://127.0.0.1:9", **keys}
    async with replica(places[0], store) as (one, _):
        reply = await one.run(LARGE, ANNA)
        assert not reply.is_error
        assert reply.texts[0].startswith('[{"number":0')
        assert reply.texts[0].endswith("it was not kept: the object store does not answer]")
        plain = await one.run("1 + 1", ANNA)
        assert plain.texts == ("2",)
