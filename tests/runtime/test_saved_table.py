"""25 saved programs over bundled packs, each called by another program, by a client of single tools and by chat."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from saved import save
from saved_table import FILES, ROWS, Row

from onetool_chat.chat_tools import ChatTools
from ot.registry.tool_definitions import possible_names
from ot.runtime.engines.engine import Engine
from ot.server.mcp_server import OneUser, build_server
from ot.workspace import Workspace
from run_app import running_app, value_of

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def keeper(shared_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Workspace]:
    """A workspace whose user keeps them all."""
    directory = tmp_path_factory.mktemp("keeper")
    for name, text in FILES.items():
        file = directory / "work" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for row in ROWS:
        save(directory, f"p_{row.function}", row.text)
    (directory / "work" / "out").mkdir()
    async with running_app(directory, engine=_Kept(shared_engine)) as app:
        yield app


class _Kept:
    """The engine of the whole file, which no workspace ends."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def aclose(self) -> None:
        """Leave it open."""


def one(row: Row) -> str:
    return row.function


@pytest.mark.parametrize("row", ROWS, ids=one)
async def test_another_program_calls_it(keeper: Workspace, row: Row) -> None:
    assert json.loads(value_of(await keeper.run(f"import json\njson.dumps([{row.call}])"))) == [row.value]


@pytest.mark.parametrize("row", ROWS, ids=one)
async def test_a_client_of_single_tools_and_a_chat_call_it(keeper: Workspace, row: Row) -> None:
    definitions = await keeper.definitions_of([f"p_{row.function}"])
    name = possible_names(f"p_{row.function}", row.function)[0]
    said = await ChatTools(keeper, definitions).execute(name, row.given)
    assert not said.is_error, said.text
    async with Client(build_server(OneUser(keeper), "1.2.3", classic=definitions)) as client:
        result = await client.call_tool(name, row.given, raise_on_error=False)
    assert not result.is_error
    assert [block.text for block in result.content if block.type == "text"] == [said.text]
    plain = row.value if isinstance(row.value, str) else None
    assert said.text == plain if plain else _same(said.text, row.value)


def _same(text: str, value: Any) -> bool:
    return json.loads(text) == value if value is not None else "no value" in text or text in ("null", "None")


def test_there_are_25_and_their_names_differ() -> None:
    assert len({row.function for row in ROWS}) == len(ROWS) >= 25


async def test_the_search_finds_them(keeper: Workspace, tmp_path: Path) -> None:
    assert "p_sum_column.sum_column" in value_of(await keeper.run("ot.help(query='sum column')"))
