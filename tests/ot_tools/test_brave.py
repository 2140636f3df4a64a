"""The pack ``brave`` in its worker, before a server that speaks Brave's documented formats, errors and limits."""

from __future__ import annotations

import threading
from itertools import count
from pathlib import Path

import pytest
from api_documents import BRAVE, CONTEXT7, PLACES, brave_error, page
from api_services import BRAVE_KEY, ApiApp, ApiServer, Seen, Served, answer, api_app, settings_of

pytestmark = pytest.mark.anyio

WEB = f"{BRAVE}/web/search"


async def test_a_search_returns_plain_hits_and_sends_the_key_in_its_header(app: ApiApp, server: ApiServer):
    server.seen.clear()
    hits = await app.value("brave.search(query='café au lait', count=2)")
    assert hits[0] == {
        "title": "café au lait & more 0",
        "url": "https://pages.example/café-au-lait/0",
        "description": "About café au lait",
        "site": "pages.example",
        "date": "2026-03-04",
    }
    assert len(hits) == 2
    (seen,) = server.seen
    assert seen.headers["x-subscription-token"] == BRAVE_KEY
    assert seen.query["q"] == ["café au lait"]
    assert BRAVE_KEY not in str(seen.query)


async def test_filters_are_sent_as_brave_names_them(app: ApiApp, server: ApiServer):
    server.seen.clear()
    await app.value(
        "brave.web_search(query='x', page=3, country='de', language='de', freshness='week', safesearch='off')"
    )
    sent = server.seen[0].query
    expected = {"offset": "2", "country": "DE", "search_lang": "de", "freshness": "pw", "safesearch": "off"}
    assert {name: sent[name][0] for name in expected} == expected


async def test_news_say_whether_they_are_breaking(app: ApiApp):
    (report,) = await app.value("brave.news_search(query='x', freshness='2026-01-01to2026-03-31')")
    assert (report["breaking"], report["date"]) == (True, "2026-03-04")


async def test_images_come_with_their_page_and_size(app: ApiApp):
    (image,) = await app.value("brave.image_search(query='cathedral')")
    assert image == {
        "title": "A cathedral",
        "url": "https://pages.example/large.jpg",
        "page": "https://pages.example/cathedral",
        "thumbnail": "https://imgs.example/small.jpg",
        "width": 500,
        "height": 400,
        "site": "pages.example",
    }


async def test_places_come_with_what_is_known_of_them(app: ApiApp, server: ApiServer):
    server.seen.clear()
    known, other = await app.value("brave.local_search(query='bookshops in Utrecht')")
    assert known == {
        "title": "The Book House",
        "url": "https://books.example",
        "address": "1 Quay, Utrecht",
        "phone": "+31 30 000",
        "rating": 4.5,
        "reviews": 120,
        "hours": ["Monday 09:00-18:00"],
        "price": "$$",
        "coordinates": [52.09, 5.12],
        "description": "Old books.",
    }
    assert (other["rating"], other["hours"], other["description"]) == (None, [], "")
    assert [seen.query.get("ids") for seen in server.seen] == [None, PLACES, PLACES]


async def test_a_question_about_no_place_has_no_places(app: ApiApp, server: ApiServer):
    with server.instead(WEB, answer({"type": "search"})):
        assert await app.value("brave.local_search(query='what is love')") == []


async def test_a_batch_keeps_the_order_and_the_errors_of_its_questions(app: ApiApp, server: ApiServer):
    def route(seen: Seen) -> Served:
        if seen.query["q"] == ["bad"]:
            return brave_error(422, "VALIDATION", "Unable to validate")
        return answer({"web": {"results": [page(seen.query["q"][0], 0)]}})

    with server.instead(WEB, route):
        first, bad, last = await app.value("brave.search_batch(queries=['a', 'bad', 'c'], count=1)")
    assert [len(row["hits"]) for row in (first, bad, last)] == [1, 0, 1]
    assert (first["query"], last["hits"][0]["description"]) == ("a", "About c")
    assert bad["error"] == "Brave Search refused the question: Unable to validate"


async def test_what_has_come_of_a_batch_is_kept_when_its_time_is_over(server: ApiServer, tmp_path: Path):
    ended = threading.Event()

    def route(seen: Seen) -> Served:
        if seen.query["q"] == ["slow"]:
            ended.wait(30)
        return answer({"web": {"results": [page("x", 0)]}})

    async with api_app(tmp_path / "app", settings_of(server, timeout=3.0)) as app:
        with server.instead(WEB, route):
            quick, slow = await app.value("brave.search_batch(queries=['quick', 'slow'])")
            ended.set()
    assert quick["hits"]
    assert slow["error"] == "Brave Search did not answer within 3 s (tools.brave.timeout)"


async def test_a_used_up_second_is_waited_for(app: ApiApp, server: ApiServer):
    numbers = count()

    def route(seen: Seen) -> Served:
        if next(numbers):
            return answer({"web": {"results": [page("x", 0)]}})
        limits = {"x_ratelimit_reset": "1, 1419704", "x_ratelimit_remaining": "0, 1000"}
        return brave_error(429, "RATE_LIMITED", "Request rate limit exceeded for plan.", **limits)

    with server.instead(WEB, route) as seen:
        assert len(await app.value("brave.search(query='x', count=1)")) == 1
    assert len(seen) == 2


async def test_a_used_up_month_is_not_waited_for(app: ApiApp, server: ApiServer):
    limits = {"x_ratelimit_reset": "1, 1419704", "x_ratelimit_remaining": "1, 0"}
    with server.instead(WEB, brave_error(429, "QUOTA_LIMITED", "Quota is used up.", **limits)) as seen:
        error = await app.error("brave.search(query='x')")
    assert (
        "RuntimeError: the rate limit of Brave Search is used up: ask again in 1,419,704 s (Quota is used up.)" in error
    )
    assert len(seen) == 1


async def test_a_service_in_trouble_is_asked_again(app: ApiApp, server: ApiServer):
    numbers = count()
    fine = answer({"web": {"results": [page("x", 0)]}})
    with server.instead(WEB, lambda _: fine if next(numbers) == 2 else answer({}, 503)) as seen:
        assert len(await app.value("brave.search(query='x', count=1)")) == 1
    assert len(seen) == 3


REFUSED: dict[str, tuple[Served, str]] = {
    "a wrong key": (
        brave_error(401, "SUBSCRIPTION_TOKEN_INVALID", "The provided subscription token is invalid."),
        "PermissionError: Brave Search refused the key: The provided subscription token is invalid. Put a key into",
    ),
    "a plan without this": (
        brave_error(403, "RESOURCE_NOT_ALLOWED", "The requested resource is not allowed."),
        "PermissionError: Brave Search does not allow this, or not with this key's plan: The requested resource",
    ),
    "a wrong parameter": (
        brave_error(422, "VALIDATION", "Unable to validate request parameter(s)"),
        "ValueError: Brave Search refused the question: Unable to validate request parameter(s)",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=[*REFUSED])
async def test_a_refusal_says_what_brave_says(app: ApiApp, server: ApiServer, case: tuple[Served, str]):
    served, expected = case
    with server.instead(WEB, served) as seen:
        assert expected in await app.error("brave.search(query='x')")
    assert len(seen) == 1


WRONG: dict[str, tuple[str, str]] = {
    "an empty query": ("query=' '", "query must not be empty"),
    "a long query": ("query='x' * 401", "query has 401 characters, more than 400"),
    "too many words": ("query='x ' * 51", "query has 51 words, more than 50"),
    "too many hits": ("query='x', count=21", "count must be 1 to 20, got 21"),
    "an unknown age": ("query='x', freshness='soon'", "freshness must be 'day', 'week', 'month', 'year' or dates"),
    "no country": ("query='x', country='Germany!'", "country must be a code such as 'DE'"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=[*WRONG])
async def test_a_wrong_argument_is_refused_before_brave_is_asked(app: ApiApp, server: ApiServer, case: tuple[str, str]):
    server.seen.clear()
    assert case[1] in await app.error(f"brave.web_search({case[0]})")
    assert not server.seen


async def test_a_missing_key_is_one_error_that_says_how_to_set_it(server: ApiServer, tmp_path: Path):
    async with api_app(tmp_path / "app", settings_of(server), secrets={}) as app:
        error = await app.error("brave.search(query='x')")
    assert (
        "PermissionError: brave needs the secret BRAVE_API_KEY, which is not set. Put a key into ~/.onetool/" in error
    )


SNIPPET = {
    "description": "Search the web and keep titles",
    "params": {"topic": {"description": "Topic to research"}, "count": {"default": 5}},
    "body": "results = brave.search(query={{ topic }}, count={{ count }})\n[hit['title'] for hit in results]",
}
MORE = {"aliases": {"ws": "brave.web_search"}, "snippets": {"brv_research": SNIPPET}}


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
