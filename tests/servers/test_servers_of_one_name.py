"""Two workspaces may have different servers of one name: neither sees the tools or the state of the other's."""

from __future__ import annotations

from pathlib import Path

import pytest

from ot.errors import ServerUnavailable
from ot.servers.catalogue import ServerCatalogue
from ot.servers.catalogue_files import CatalogueFiles
from ot.servers.definition_pins import DefinitionPins
from ot.servers.definitions import ServerDefinitions
from ot.servers.learned_shapes import LearnedShapes
from ot.servers.pool import ServerPool
from ot.servers.spec import ServerSpec
from servers.desk import Door, fake_spec, short_backoff

pytestmark = pytest.mark.anyio


def named(directory: Path, tool: str) -> ServerSpec:
    """Return a server that offers *tool*, under the name that all of them have."""
    names = directory / tool
    names.write_text(tool)
    return fake_spec(f"list={names}")


async def test_each_has_its_own_definitions_state_and_process(tmp_path: Path):
    one, two = named(tmp_path, "apple"), named(tmp_path, "pear")
    pool = ServerPool(backoff=short_backoff)
    try:
        first, second = Door(one, pool), Door(two, pool)
        assert await first.call("pid") != await second.call("pid")
        assert pool.connection(one).definition("apple")
        assert pool.connection(two).definition("pear")
        assert not pool.connection(one).definition("pear")
        assert not pool.connection(two).definition("apple")
        assert set(pool.states()) == {one.key, two.key}
        with pytest.raises(ServerUnavailable):
            await second.call("die")
        assert first.state["state"] == "connected"
        assert second.state["state"] != "connected"
    finally:
        await pool.aclose()


async def test_letting_go_of_one_leaves_the_other(tmp_path: Path):
    one, two = named(tmp_path, "apple"), named(tmp_path, "pear")
    pool = ServerPool(backoff=short_backoff)
    here, there = object(), object()
    try:
        pool.hold(here, [one.key])
        pool.hold(there, [two.key])
        await pool.list_all([one, two])
        pool.hold(there, [])
        assert set(pool.states()) == {one.key}
        assert pool.connection(one).definition("apple")
    finally:
        await pool.aclose()


async def test_each_catalogue_shows_its_own_tools(tmp_path: Path):
    one, two = named(tmp_path, "apple"), named(tmp_path, "pear")

    def heard(spec: ServerSpec, definitions: ServerDefinitions) -> None:
        for catalogue in catalogues:
            catalogue.learned(spec, definitions)

    pool = ServerPool(heard, backoff=short_backoff)
    directory = tmp_path / "servers"
    kept = CatalogueFiles(directory), DefinitionPins(directory), LearnedShapes(directory)
    catalogues = [ServerCatalogue(pool, *kept), ServerCatalogue(pool, *kept)]
    try:
        for catalogue, spec in zip(catalogues, (one, two), strict=True):
            catalogue.packs({spec.name: spec})
        for catalogue in catalogues:
            await catalogue.ask_named(["fake"])
            assert catalogue.stale
        (apples,), (pears,) = (
            catalogue.packs({spec.name: spec}) for catalogue, spec in zip(catalogues, (one, two), strict=True)
        )
        assert ("apple" in apples.tools, "pear" in apples.tools) == (True, False)
        assert ("apple" in pears.tools, "pear" in pears.tools) == (False, True)
    finally:
        await pool.aclose()
