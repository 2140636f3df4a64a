"""The pack ``context7`` in its worker, before a server that speaks Context7's documented formats and errors."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from itertools import count
from pathlib import Path

import pytest
from api_documents import CONTEXT7, documented_services
from api_services import CONTEXT7_KEY, ApiApp, ApiServer, answer, api_app, serving, settings_of

pytestmark = pytest.mark.anyio

FIRST = {
    "title": "Put a thing",
    "text": "Puts it on the shelf.",
    "code": "shelf.put(1)",
    "language": "python",
    "source": "https://github.com/acme/shelf/blob/main/README.md",
}


@pytest.fixture(scope="module")
def server() -> Generator[ApiServer]:
    with serving(documented_services()) as server:
        yield server


@pytest.fixture(scope="module")
async def app(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ApiApp]:
    async with api_app(tmp_path_factory.mktemp("context7") / "app", settings_of(server)) as app:
        yield app


async def test_a_search_returns_libraries_and_sends_the_key(app: ApiApp, server: ApiServer):
    server.seen.clear()
    assert await app.value("context7.search(query='shelf', question='put things')") == [
        {
            "id": "/acme/shelf",
            "title": "Shelf",
            "description": "Keeps things",
            "versions": ["v1.2.0", "v2.0.0"],
            "snippets": 42,
            "trust": 9.5,
            "score": 88,
            "updated": "2026-02-03",
        }
    ]
    (seen,) = server.seen
    assert seen.query == {"libraryName": ["shelf"], "query": ["put things"]}
    assert seen.headers["authorization"] == f"Bearer {CONTEXT7_KEY}"


async def test_a_bare_list_of_libraries_is_read_too(app: ApiApp, server: ApiServer):
    with server.instead(f"{CONTEXT7}/libs/search", answer([{"id": "/a/b", "name": "B"}])):
        (library,) = await app.value("context7.search(query='b')")
    assert (library["title"], library["trust"], library["versions"]) == ("B", None, [])


async def test_documentation_comes_as_snippets_of_code_and_prose(app: ApiApp):
    found = await app.value("context7.doc(library='/acme/shelf', query='put')")
    first, second, prose = found["snippets"]
    assert found["library"] == "/acme/shelf"
    assert first == FIRST
    assert second["language"] == "sh"
    assert (prose["title"], prose["text"], prose["code"]) == ("Guide > Putting", "Things stay.", "")


async def test_a_name_is_looked_up_and_a_version_appended(app: ApiApp, server: ApiServer):
    server.seen.clear()
    found = await app.value("context7.doc(library='shelf', query='put', version='v1.2.0', limit=1)")
    assert (found["library"], len(found["snippets"])) == ("/acme/shelf/v1.2.0", 1)
    assert [seen.path.rpartition("/")[2] for seen in server.seen] == ["search", "context"]


async def test_a_library_that_has_moved_is_asked_where_it_is_now(app: ApiApp):
    assert (await app.value("context7.doc(library='/acme/rack', query='put')"))["library"] == "/acme/shelf"


async def test_a_library_that_is_not_there_yet_says_so(app: ApiApp):
    assert "is still reading the documentation of '/acme/new'" in await app.error(
        "context7.doc(library='/acme/new', query='x')"
    )


async def test_an_unknown_library_is_a_lookup_error(app: ApiApp, server: ApiServer):
    error = await app.error("context7.doc(library='/no/where', query='x')")
    assert 'LookupError: Context7 has no such thing: Library "/no/where" not found.' in error
    with server.instead(f"{CONTEXT7}/libs/search", answer({"results": []})):
        error = await app.error("context7.doc(library='nowhere', query='x')")
    assert "LookupError: Context7 has no library 'nowhere': try other words with context7.search" in error


async def test_a_limit_is_waited_for_as_long_as_the_service_says(app: ApiApp, server: ApiServer):
    numbers = count()
    limited, fine = answer({"error": "too_many"}, 429, retry_after="0.2"), answer({"results": []})
    with server.instead(f"{CONTEXT7}/libs/search", lambda _: fine if next(numbers) else limited) as seen:
        assert await app.value("context7.search(query='b')") == []
    assert len(seen) == 2


async def test_without_a_key_it_asks_without_one(server: ApiServer, tmp_path: Path):
    async with api_app(tmp_path / "app", settings_of(server), secrets={}) as app:
        server.seen.clear()
        assert await app.value("context7.search(query='shelf')")
    assert "authorization" not in server.seen[0].headers
