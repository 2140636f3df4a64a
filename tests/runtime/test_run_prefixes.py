"""Abbreviated parameter names mean the full ones, whichever tool is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from run_app import error_of, run_in, running_app, value_of

pytestmark = pytest.mark.anyio

WEB = '''
    def query_only(*, query: str) -> dict:
        """Take one."""
        return {"query": query}

    def three(*, query_info: str = "-", query: str = "-", quality: str = "-") -> dict:
        """Take three that begin alike."""
        return {"query_info": query_info, "query": query, "quality": quality}

    def two(query: str, count: int = 1) -> dict:
        """Take two."""
        return {"query": query, "count": count}
'''


async def answer(tmp_path: Path, call: str) -> object:
    return json.loads(value_of(await run_in(tmp_path, call, {"web": WEB})))


@pytest.mark.scenario("000-40")
async def test_a_full_name_is_passed_on_unchanged(tmp_path: Path) -> None:
    assert await answer(tmp_path, 'web.query_only(query="test")') == {"query": "test"}
    # Also where another parameter, further ahead, begins with it.
    assert await answer(tmp_path, 'web.three(query="test")') == {"query_info": "-", "query": "test", "quality": "-"}


@pytest.mark.scenario("000-41")
async def test_a_prefix_means_its_parameter(tmp_path: Path) -> None:
    assert await answer(tmp_path, 'web.query_only(q="test")') == {"query": "test"}


@pytest.mark.scenario("000-42")
async def test_of_several_the_first_in_the_signature_wins(tmp_path: Path) -> None:
    assert await answer(tmp_path, 'web.three(q="test")') == {"query_info": "test", "query": "-", "quality": "-"}


@pytest.mark.scenario("000-43")
async def test_a_longer_prefix_picks_the_one_that_fits(tmp_path: Path) -> None:
    assert await answer(tmp_path, 'web.three(qual="test")') == {"query_info": "-", "query": "-", "quality": "test"}


@pytest.mark.scenario("000-44")
async def test_a_name_that_fits_nothing_is_refused_as_python_does(tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, 'web.query_only(xyz="test")', {"web": WEB}))
    assert text.startswith("TypeError: web.query_only() got an unexpected keyword argument 'xyz'")


@pytest.mark.scenario("000-45")
async def test_full_names_and_prefixes_go_together(tmp_path: Path) -> None:
    assert await answer(tmp_path, 'web.two(query="test", c=5)') == {"query": "test", "count": 5}


@pytest.mark.scenario("000-46")
async def test_prefixes_work_for_the_packs_that_are_bundled(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        (tmp_path / "work" / "a.txt").write_text("some words\n")
        assert "file" in app.picture.registry.packs
        assert value_of(await app.run('file.read(p="a.txt")')) == value_of(await app.run('file.read(path="a.txt")'))
        assert "some words" in value_of(await app.run('file.read(pa="a.txt")'))


@pytest.mark.scenario("000-49")
async def test_prefixes_work_for_the_ot_pack(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"fire": "def crawl(): return 1", "web": WEB}) as app:
        assert value_of(await app.run('ot.tools(p="fire", i="list")')) == "[fire.crawl]"
        assert value_of(await app.run('ot.help(q="fire.crawl")')) == value_of(
            await app.run('ot.help(query="fire.crawl")')
        )


async def test_two_names_for_one_parameter_are_refused(tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, 'web.two(query="a", q="b")', {"web": WEB}))
    assert "'query' and 'q' both mean 'query'" in text
