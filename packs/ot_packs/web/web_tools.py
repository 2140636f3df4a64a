# /// script
# requires-python = ">=3.12"
# dependencies = [
#     "httpx2>=2.16,<3",
#     "protego>=0.5,<1",
#     "trafilatura>=2.3,<3",
# ]
# ///
"""Fetch web pages, many at once, as Markdown, text or JSON; their links and tables; dead links."""

from __future__ import annotations

# ruff: noqa: E402 - a pack file opens with its name and its tools
pack = "web"

__all__ = ["check", "fetch", "fetch_many", "links", "tables"]
__ot_read_only__ = ["check", "fetch", "fetch_many", "links", "tables"]

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict
from weakref import WeakKeyDictionary

from web_cache import PageCache, cache_directory
from web_fetcher import BadStatus, Fetcher

import ot_sdk
from ot_sdk.numbers import whole

MAX_URLS = 500
MAX_LINKS = 10_000
FORMATS = ("markdown", "text", "json", "raw", "html")


@dataclass(frozen=True)
class Config:
    """The settings ``tools.web``."""

    internal_hosts: tuple[str, ...] = ()
    """Hosts with internal addresses that may be fetched from, with or without a port."""
    robots: bool = True
    """Whether robots.txt is respected."""
    user_agent: str = "OneTool/1 (a program that fetches pages for a user)"
    """What the pack calls itself in requests."""
    seconds: float = 20.0
    """Time for one page, from connecting to its last byte, redirects included."""
    batch_seconds: float = 25.0
    """Time for fetch_many and check; what is not there by then is reported as an error of that page."""
    read_seconds: float = 10.0
    """Time for turning one page into text."""
    max_bytes: int = 10 << 20
    """Bytes of one page, as sent and as unpacked."""
    redirects: int = 5
    """Redirects followed for one page."""
    concurrency: int = 8
    """Requests at once."""
    per_host: int = 2
    """Requests at once to one host."""
    pause_seconds: float = 0.1
    """Time between the starts of two requests to one host."""
    fresh_seconds: float = 300.0
    """How long a copy is used whose server does not say how long."""
    cache_mb: int = 200
    """Size of the cache; 0 switches it off."""

    def __post_init__(self) -> None:
        """Raise ValueError for a number that is out of bounds."""
        bounds = {
            **dict.fromkeys(("seconds", "batch_seconds", "read_seconds"), (0.01, 3600)),
            **dict.fromkeys(("pause_seconds", "fresh_seconds"), (0, 30 * 86400)),
            **dict.fromkeys(("concurrency", "per_host"), (1, 64)),
            **{"max_bytes": (1, 100 << 20), "redirects": (0, 20), "cache_mb": (0, 10_000)},
        }
        for name, (low, high) in bounds.items():
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} must be from {low} to {high:,}")
        if not self.user_agent.isascii() or not self.user_agent.isprintable() or not self.user_agent:
            raise ValueError("user_agent must be printable ASCII text")


class WebPage(TypedDict):
    """One page of many; ``content`` is None and ``error`` says why where ``ok`` is False."""

    url: str
    ok: bool
    status: int
    final_url: str
    type: str
    title: str
    content: Any
    cached: bool
    error: str


class Checked(TypedDict):
    """What an address leads to; ``status`` is 0 where nothing answered, and ``error`` says why."""

    url: str
    ok: bool
    status: int
    final_url: str
    error: str


class WebLink(TypedDict):
    """A page that a page links to."""

    url: str
    text: str


class WebTable(TypedDict):
    """A table of a page; the keys of its rows are its columns."""

    caption: str
    columns: list[str]
    rows: list[dict[str, str]]


async def fetch(
    *,
    url: str,
    format: Literal["markdown", "text", "json", "raw", "html"] = "markdown",
    links: bool = False,
    limit: int | None = None,
    cache: bool = True,
    max_age: float | None = None,
) -> Any:
    """Fetch one page or file from the web by its URL, as Markdown, text, JSON or raw.

    Args:
        url: Its address, with http:// or https://.
        format: 'markdown' or 'text' for the main content of a page, 'json' for the value of a JSON document, 'raw' or
            'html' for the source as it came: text as text, anything else as bytes.
        links: Keep links in Markdown, and say below it which comes next (rel=next) and how many are left out.
        limit: The most characters, or bytes, to return; a JSON value is never cut.
        cache: False neither uses nor keeps a copy.
        max_age: Take a copy up to so many seconds old, whatever its server says; 0 asks the server.

    Returns:
        Text; with format='json' the value, with format='raw' text or bytes.

    Example:
        web.fetch(url="https://example.com/", format="text", limit=2000)
    """
    _check_limits(format, limit, max_age)
    page = await _page(url, format, links, limit, cache, max_age)
    return page["content"]


async def fetch_many(
    *,
    urls: str | list[str],
    format: Literal["markdown", "text", "json", "raw", "html"] = "markdown",
    links: bool = False,
    limit: int | None = None,
    cache: bool = True,
    max_age: float | None = None,
) -> list[WebPage]:
    """Fetch many URLs at once; one that fails is reported in its place and costs the others nothing.

    Args:
        urls: Up to 500 addresses; the same one twice is fetched once.
        format: As of web.fetch.
        links: As of web.fetch.
        limit: The most characters, or bytes, of each page.
        cache: As of web.fetch.
        max_age: As of web.fetch.

    Returns:
        One dict for each address, in the order given; its ``content`` is what web.fetch returns.

    Example:
        web.fetch_many(urls=["https://example.com/", "https://example.org/"], format="text")
    """
    _check_limits(format, limit, max_age)

    async def one(url: str) -> WebPage:
        return await _page(url, format, links, limit, cache, max_age)

    return await _each(urls, one, _make_failed_page)


async def check(*, urls: str | list[str]) -> list[Checked]:
    """Check which links are alive and which are dead, without fetching the pages.

    Args:
        urls: Up to 500 addresses.

    Returns:
        One dict for each address, in the order given; ``ok`` means that it answers with a page, redirects followed.

    Example:
        web.check(urls=["https://example.com/", "https://example.com/gone"])
    """

    async def one(url: str) -> Checked:
        answer = await _fetcher().head(url)
        error = "" if answer.is_page else str(BadStatus(answer))
        return {"url": url, "ok": answer.is_page, "status": answer.status, "final_url": answer.url, "error": error}

    def report_failure(url: str, error: Exception) -> Checked:
        return {"url": url, "ok": False, "status": 0, "final_url": "", "error": str(error)}

    return await _each(urls, one, report_failure)


async def links(*, url: str, contains: str = "", limit: int = 1000) -> list[WebLink]:
    """List the pages that a page links to, each once, as absolute addresses.

    Args:
        url: The page.
        contains: Only addresses with this text in them.
        limit: The most links to return; there may be more when as many come back.

    Returns:
        The address and the text of each link, in the order of the page.

    Example:
        web.links(url="https://example.com/", contains="/docs/")
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    return whole(await _read("links", url, contains=contains, limit=min(limit, MAX_LINKS)), limit, MAX_LINKS)


async def tables(*, url: str) -> list[WebTable]:
    """Read the HTML tables of a web page as rows of dicts.

    Args:
        url: The page.

    Returns:
        A caption, the columns and the rows of each table; the first row names the columns.

    Example:
        web.tables(url="https://example.com/prices")
    """
    return await _read("tables", url)


# ---------------------------------------------------------------- one page


async def _page(url: str, format: str, links: bool, limit: int | None, cache: bool, max_age: float | None) -> WebPage:
    format = "raw" if format == "html" else format
    fetcher = _fetcher()
    answer = await fetcher.get(url, cache=cache, max_age=max_age)
    read = await fetcher.read(format, answer, links=links)
    content: Any = read["content"]
    if format == "raw" and content is None:
        content = answer.body
    if limit is not None and isinstance(content, (str, bytes)):
        content = content[:limit]
    return {
        "url": url,
        "ok": True,
        "status": answer.status,
        "final_url": answer.url,
        "type": answer.type,
        "title": read["title"],
        "content": content,
        "cached": answer.cached,
        "error": "",
    }


def _make_failed_page(url: str, error: Exception) -> WebPage:
    status, final_url = (error.answer.status, error.answer.url) if isinstance(error, BadStatus) else (0, "")
    return {
        "url": url,
        "ok": False,
        "status": status,
        "final_url": final_url,
        "type": "",
        "title": "",
        "content": None,
        "cached": False,
        "error": str(error),
    }


async def _read(what: str, url: str, **asked: Any) -> Any:
    fetcher = _fetcher()
    return (await fetcher.read(what, await fetcher.get(url), **asked))["content"]


# ---------------------------------------------------------------- many


async def _each[Item](
    urls: str | Sequence[str], one: Callable[[str], Awaitable[Item]], failed: Callable[[str, Exception], Item]
) -> list[Item]:
    """Return what *one* makes of each address, or what *failed* makes of its error, in order and in time."""
    urls = [urls] if isinstance(urls, str) else urls
    if len(urls) > MAX_URLS:
        raise ValueError(f"{len(urls):,} addresses are too many for one call: at most {MAX_URLS}")
    seconds: float = ot_sdk.config().batch_seconds
    tasks = {url: asyncio.create_task(_settle(one, url)) for url in dict.fromkeys(urls)}
    try:
        if tasks:
            await _wait(list(tasks.values()), seconds)
    finally:
        for task in tasks.values():
            task.cancel()
    late = TimeoutError(f"it was not there within {seconds:g} s, the time of one call: ask for fewer at once, or again")
    return [_outcome(url, tasks[url], failed, late) for url in urls]


async def _settle[Item](one: Callable[[str], Awaitable[Item]], url: str) -> Item | Exception:
    try:
        return await one(url)
    except Exception as error:  # noqa: BLE001 - the others go on
        return error


async def _wait(tasks: list[asyncio.Task[Any]], seconds: float) -> None:
    done = 0
    end = asyncio.get_running_loop().time() + seconds
    waiting = set(tasks)
    while waiting and (left := end - asyncio.get_running_loop().time()) > 0:
        finished, waiting = await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        done += len(finished)
        ot_sdk.progress(done, len(tasks), "pages")


def _outcome[Item](
    url: str, task: asyncio.Task[Item | Exception], failed: Callable[[str, Exception], Item], late: Exception
) -> Item:
    result = late if not task.done() or task.cancelled() else task.result()
    return failed(url, result) if isinstance(result, Exception) else result


# ---------------------------------------------------------------- what all calls share

_fetchers: WeakKeyDictionary[asyncio.AbstractEventLoop, Fetcher] = WeakKeyDictionary()


def _fetcher() -> Fetcher:
    loop = asyncio.get_running_loop()
    if loop not in _fetchers:
        config: Config = ot_sdk.config()
        _fetchers[loop] = Fetcher(config, _cache(config))
    return _fetchers[loop]


def _cache(config: Config) -> PageCache | None:
    if not config.cache_mb:
        return None
    # All that decides which pages may be seen, or what a server answers.
    scope = [sorted(config.internal_hosts), config.robots, config.user_agent]
    try:
        return PageCache(cache_directory(), config.cache_mb << 20, scope)
    except (OSError, sqlite3.Error) as error:
        ot_sdk.log(f"pages are not kept: {error}", "warning")
        return None


def _check_limits(format: str, limit: int | None, max_age: float | None) -> None:
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(map(repr, FORMATS))}, not {format[:40]!r}")
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    if max_age is not None and not max_age >= 0:
        raise ValueError("max_age must be 0 or more seconds")
