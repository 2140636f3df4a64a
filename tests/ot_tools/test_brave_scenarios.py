"""The scenarios that name ``brave`` and ``context7``, on the packs themselves."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator

import pytest
from api_documents import BRAVE, CONTEXT7, documented_services
from api_services import ApiApp, ApiServer, api_app, serving, settings_of

pytestmark = pytest.mark.anyio

SNIPPET = {
    "description": "Search the web and keep titles",
    "params": {"topic": {"description": "Topic to research"}, "count": {"default": 5}},
    "body": "results = brave.search(query={{ topic }}, count={{ count }})\n[hit['title'] for hit in results]",
}


@pytest.fixture(scope="module")
def server() -> Generator[ApiServer]:
    with serving(documented_services()) as server:
        yield server


@pytest.fixture(scope="module")
async def app(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ApiApp]:
    directory, more = tmp_path_factory.mktemp("scenarios") / "app", {"aliases": {"ws": "brave.web_search"}}
    async with api_app(directory, settings_of(server), **more, snippets={"brv_research": SNIPPET}) as app:
        yield app


@pytest.mark.scenario("000-25", "000-29")
@pytest.mark.parametrize("call", ['brave.web_search(query="test")', 'ws(query="test")'], ids=["by name", "by alias"])
async def test_a_call_reaches_the_web_search(app: ApiApp, server: ApiServer, call: str):
    server.seen.clear()
    assert len(await app.value(call)) == 10
    assert [(seen.path, seen.query["q"]) for seen in server.seen] == [(f"{BRAVE}/web/search", ["test"])]


@pytest.mark.scenario("000-27")
async def test_an_unknown_function_is_answered_with_those_of_the_pack(app: ApiApp):
    text = await app.error("brave.nonexistent()")
    assert "'nonexistent' is not in pack 'brave'" in text
    assert "image_search, local_search, news_search, search, search_batch, web_search" in text


@pytest.mark.scenario("000-28")
async def test_a_search_of_either_pack_reaches_its_own_service(app: ApiApp, server: ApiServer):
    server.seen.clear()
    await app.value('brave.search(query="test")')
    await app.value('context7.search(query="test")')
    assert [seen.path for seen in server.seen] == [f"{BRAVE}/web/search", f"{CONTEXT7}/libs/search"]


async def test_the_snippet_of_the_scenarios_searches(app: ApiApp):
    assert len(await app.value("$brv_research topic=Python")) == 5


@pytest.mark.scenario("001-44", "001-52")
@pytest.mark.parametrize("more", ["", ', info="full"'], ids=["short", "full"])
async def test_help_of_a_search_is_its_page(app: ApiApp, more: str):
    page = await app.value(f'ot.help(query="brave.search"{more})')
    assert page.startswith("# brave.search\n")
    assert "the pages that answer a question best" in page
    assert "brave.search(query: str, count: int = 10)" in page


@pytest.mark.scenario("001-29")
async def test_the_pack_in_full_lists_its_tools(app: ApiApp):
    text = str(await app.value('ot.packs(pattern="brave", info="full")'))
    for tool in ("image_search", "local_search", "news_search", "search", "search_batch", "web_search"):
        assert f"brave.{tool}" in text
