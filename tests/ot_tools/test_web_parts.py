"""Parts of the pack ``web`` in this process: the file of copies, and the processes that read pages."""

from __future__ import annotations

import asyncio
import gzip
import importlib
import os
import sys
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ot_tools
from pace import PATIENCE

pytestmark = pytest.mark.anyio

SOURCES = Path(ot_tools.__file__).parent / "in_workers" / "web"
MODULES = ("gzip_body", "web_requests", "web_cache", "web_reading", "web_readers", "web_fetcher")
MEGABYTE = 1 << 20


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Generator[Any]:
    """The pack's own modules."""
    monkeypatch.syspath_prepend(str(SOURCES.parent / "_shared"))
    monkeypatch.syspath_prepend(str(SOURCES))
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    for name in MODULES:
        del sys.modules[name]


def answer(parts: Any, url: str, body: bytes) -> Any:
    return parts.web_requests.WebAnswer(url, 200, "OK", {"content-type": "text/plain"}, body)


# ---------------------------------------------------------------- copies


def test_copies_take_no_more_room_than_they_may(parts: Any, tmp_path: Path):
    cache = parts.web_cache.PageCache(tmp_path / "web", MEGABYTE, ())
    for number in range(60):
        cache.put(answer(parts, f"http://a.example/{number}", os.urandom(100_000)))
        cache.get("http://a.example/0")
    cache.put(answer(parts, "http://a.example/large", os.urandom(MEGABYTE // 2)))
    found = [number for number in range(60) if cache.get(f"http://a.example/{number}")]
    assert 59 in found and 0 in found and 2 < len(found) < 11
    assert cache.get("http://a.example/large") is None
    assert (tmp_path / "web" / "pages.sqlite").stat().st_size < 2 * MEGABYTE


def test_a_damaged_file_of_copies_is_made_anew(parts: Any, tmp_path: Path):
    (tmp_path / "web").mkdir(mode=0o700)
    (tmp_path / "web" / "pages.sqlite").write_bytes(b"no database" * 500)
    cache = parts.web_cache.PageCache(tmp_path / "web", MEGABYTE, ())
    cache.put(answer(parts, "http://a.example/", b"kept"))
    assert cache.get("http://a.example/").answer.body == b"kept"


@pytest.mark.parametrize("wrong", ["open to others", "a link"])
def test_a_place_for_copies_that_others_could_use_is_refused(parts: Any, tmp_path: Path, wrong: str):
    (tmp_path / "web").mkdir(mode=0o700)
    if wrong == "a link":
        (tmp_path / "target").write_bytes(b"mine")
        (tmp_path / "web" / "pages.sqlite").symlink_to(tmp_path / "target")
    else:
        (tmp_path / "web").chmod(0o777)
    with pytest.raises(PermissionError):
        parts.web_cache.PageCache(tmp_path / "web", MEGABYTE, ())
    assert wrong != "a link" or (tmp_path / "target").read_bytes() == b"mine"


# ---------------------------------------------------------------- archives


def test_an_archive_is_unpacked_to_its_limit_and_one_byte_more(parts: Any):
    body = parts.gzip_body.GzipBody(1000)
    bomb = gzip.compress(bytes(MEGABYTE))
    assert len(body.add(bomb[:500])) == 1001
    assert body.add(bomb[500:]) == b""


# ---------------------------------------------------------------- readers


async def read(readers: Any, body: bytes = b"[1]") -> Any:
    return (await readers.read("json", body, type="application/json", charset=""))["content"]


async def test_a_reader_that_dies_is_an_error_of_its_page_alone(parts: Any):
    readers = parts.web_readers.Readers(PATIENCE)
    assert await read(readers) == [1]
    (reader,) = readers._idle
    reading = asyncio.create_task(read(readers, b"[" + b"[1,2]," * 1_000_000 + b"3]"))
    await asyncio.sleep(0)  # it has its reader now, and has sent nothing of substance
    assert readers._idle == []
    reader.end()
    with pytest.raises(ValueError, match="it made the parser crash"):
        await reading
    assert await read(readers) == [1]
    readers._idle[0].end()
    await readers._idle[0]._process.wait()
    assert await read(readers) == [1]  # one that died while it was idle is nobody's error
    readers._idle[0].end()
    await readers._idle[0]._process.wait()


async def test_a_reader_has_so_much_memory_and_no_more(parts: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parts.web_readers, "MEGABYTES", 150)
    readers = parts.web_readers.Readers(PATIENCE)
    with pytest.raises(ValueError, match=r"it is too large or too deep to be read \(MemoryError\)"):
        await read(readers, b"[" + b"{}," * 3_000_000 + b"{}]")
    assert await read(readers) == [1]
    readers._idle[0].end()
    await readers._idle[0]._process.wait()


async def test_a_reader_that_is_not_needed_ends(parts: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parts.web_readers, "IDLE_SECONDS", 0.01)
    readers = parts.web_readers.Readers(PATIENCE)
    assert await read(readers) == [1]
    (reader,) = readers._idle
    async with asyncio.timeout(PATIENCE):
        await reader._process.wait()
    assert readers._idle == []


# ---------------------------------------------------------------- sites


@pytest.fixture
def fetcher(parts: Any) -> Any:
    """A fetcher that asks nobody."""
    limits = SimpleNamespace(
        internal_hosts=(), user_agent="Test/1", max_bytes=1000, read_seconds=1.0, concurrency=1, per_host=1, robots=True
    )
    return parts.web_fetcher.Fetcher(limits, None)


async def test_no_more_sites_are_remembered_than_fit(parts: Any, fetcher: Any):
    for number in range(parts.web_fetcher.MAX_SITES + 9):
        fetcher._site(fetcher._rule.check_url(f"http://{number}.example/"))
    assert len(fetcher._sites) == parts.web_fetcher.MAX_SITES


async def test_a_site_cannot_make_its_users_wait_for_ever(parts: Any, fetcher: Any, monkeypatch: pytest.MonkeyPatch):
    async def rules(*_: object) -> bytes:
        return b"Crawl-delay: 1000000"

    async def delay(*_: object, **asked: object) -> Any:
        return {"content": {"allowed": True, "delay": 1_000_000.0}}

    monkeypatch.setattr(fetcher, "_robots", rules)
    monkeypatch.setattr(fetcher._readers, "read", delay)
    place = fetcher._rule.check_url("http://a.example/")
    await fetcher._check_robots(place, None)
    assert fetcher._site(place).delay == parts.web_fetcher.MAX_DELAY
