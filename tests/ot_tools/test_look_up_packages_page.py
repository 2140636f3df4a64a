"""The page look-up-packages-and-the-web: each of its programs, before services on loopback."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from api_documents import BRAVE, documented_services
from api_services import ApiApp, Seen, Served, answer, api_app, serving, settings_of

from docs_blocks import DOCS, blocks_of

pytestmark = pytest.mark.anyio

PAGE = DOCS / "how-to/look-up-packages-and-the-web.md"
PROGRAMS = [block.text for block in blocks_of(PAGE) if block.language == "python"]
EXPECTED: dict[str, Any] = {
    "which are behind": ["shelf: 1.2.0 -> 2.0.0 (major)", "httpx: 0.27.2 -> 0.28.1 (minor)"],
    "what changed": [
        "shelf 2.0.0 (2026-05-01): Broke `get`.",
        "lamp 0.2.1 (2025-04-01): - Brighter.\n\n### Fixed\n\n- Off means off.",
        "lamp 0.2 (2025-02-01): Dimmer.",
    ],
    "which are vulnerable": [{"package": "shelf", "id": "PYSEC-2026-1", "fixed_in": ["1.2.0"]}],
    "how it is done": {"library": "/acme/shelf/v2.0.0", "examples": ["shelf.put(1)"]},
}


@pytest.fixture(scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ApiApp]:
    directory = tmp_path_factory.mktemp("page") / "app"
    with serving(documented_services()) as server:
        async with api_app(directory, settings_of(server, timeout=20)) as app:
            text = "# ours\nshelf>=1.0,<2\nhttpx ~= 0.27.0\nrich\n"
            (directory / "work/requirements.txt").write_text(text)
            yield app


@pytest.mark.parametrize("number", range(len(EXPECTED)), ids=[*EXPECTED])
async def test_a_program_of_the_page_returns_what_it_is_for(app: ApiApp, number: int):
    assert await app.value(PROGRAMS[number]) == [*EXPECTED.values()][number]


HITS = {
    "asyncio cancel scopes": ["a", "shared", "b"],
    "structured concurrency python": ["shared", "c"],
    "anyio task groups": ["d", "e", "f", "shared", "a"],
}


async def test_the_hits_of_three_questions_are_merged(tmp_path: Path):
    def found(seen: Seen) -> Served:
        hits = [{"title": name.upper(), "url": f"https://{name}.example/"} for name in HITS[seen.query["q"][0]]]
        return answer({"type": "search", "web": {"results": hits}})

    services = documented_services()
    services.routes[f"{BRAVE}/web/search"] = found
    with serving(services) as server:
        async with api_app(tmp_path / "app", settings_of(server, timeout=20)) as app:
            pages = await app.value(PROGRAMS[len(EXPECTED)])
    scores = Counter[str]()
    for names in HITS.values():
        scores.update({name: Fraction(1, rank) for rank, name in enumerate(names, 1)})
    assert {page["url"]: round(page["score"], 6) for page in pages} == {
        f"https://{name}.example/": round(float(score), 6) for name, score in scores.items()
    }
    assert [page["title"] for page in pages][:3] == ["SHARED", "A", "D"], "what several questions find is worth more"
    assert len(PROGRAMS) == len(EXPECTED) + 1


def test_the_page_about_looking_things_up_is_short(tmp_path: Path):
    assert len(PAGE.read_text().split()) < 1500
