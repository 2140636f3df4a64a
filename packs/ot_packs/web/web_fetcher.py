"""Fetcher: from an address to its answer, over the cache, robots.txt, the turns of each host and redirects."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import httpx2
from certificates import certificates
from web_cache import PageCache
from web_reader_processes import Readers
from web_requests import PORTS, PlaceRule, Requests, WebAnswer

from ot_sdk.network import retry_seconds

REDIRECTS = (301, 302, 303, 307, 308)
ROBOTS_BYTES = 512 << 10
ROBOTS_SECONDS = 3600.0
MAX_DELAY = 5.0
"""The longest pause that a robots.txt can ask for; more would look like a page that does not answer."""
MAX_SITES = 1000


class FetchLimits(Protocol):
    """The settings that are needed here."""

    @property
    def internal_hosts(self) -> tuple[str, ...]: ...
    @property
    def robots(self) -> bool: ...
    @property
    def user_agent(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def read_seconds(self) -> float: ...
    @property
    def max_bytes(self) -> int: ...
    @property
    def redirects(self) -> int: ...
    @property
    def concurrency(self) -> int: ...
    @property
    def per_host(self) -> int: ...
    @property
    def pause_seconds(self) -> float: ...
    @property
    def fresh_seconds(self) -> float: ...


class BadStatus(Exception):
    """A server answered, but not with the page, or with a part of it that nobody asked for."""

    def __init__(self, answer: WebAnswer) -> None:
        seconds = retry_seconds(answer.headers)
        wait = "" if seconds is None else f"; it asks to wait {seconds:,.0f} s"
        super().__init__(f"{answer.url} answered {answer.status} {answer.reason[:80]}".rstrip() + wait)
        self.answer = answer


@dataclass
class Site:
    """What is known of one origin."""

    turns: asyncio.Semaphore
    rules: bytes | None = None
    """Its robots.txt; nothing while it was not asked."""
    expires: float = 0.0
    next_start: float = 0.0
    delay: float = 0.0
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class Budget:
    """The seconds that one page may take; waiting for its turn does not count."""

    def __init__(self, seconds: float, url: str) -> None:
        self._seconds = self._left = seconds
        self._url = url

    @asynccontextmanager
    async def spend(self) -> AsyncGenerator[None]:
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._left):
                yield
        except TimeoutError:
            raise TimeoutError(
                f"{self._url} was not complete within {self._seconds:g} s: try again, or raise tools.web.seconds"
            ) from None
        finally:
            self._left -= time.monotonic() - started


class Fetcher:
    """Fetches for all calls of this process."""

    def __init__(self, limits: FetchLimits, cache: PageCache | None) -> None:
        self._limits = limits
        self._cache = cache
        self._rule = PlaceRule(limits.internal_hosts)
        self._requests = Requests(self._rule, limits.user_agent, limits.max_bytes)
        self._readers = Readers(limits.read_seconds)
        self._turns = asyncio.Semaphore(limits.concurrency)
        self._sites: dict[str, Site] = {}

    async def get(self, url: str, *, cache: bool = True, max_age: float | None = None) -> WebAnswer:
        """Return the page at *url*, redirects followed.

        Raises:
            BadStatus: The server answers with an error.
            ConnectionError: It cannot be reached.
            PermissionError: Its address is internal, or its robots.txt forbids it.
            TimeoutError: It takes too long.
            ValueError: It is too large, or no address.
        """
        answer = await self._follow(url, partial(self._get_once, cache=cache, max_age=max_age))
        if not answer.is_page:
            raise BadStatus(answer)
        return answer

    async def head(self, url: str) -> WebAnswer:
        """Return the head of what *url* leads to, of whatever status; raises as above."""
        return await self._follow(url, self._head)

    async def _head(self, place: httpx2.URL, budget: Budget) -> WebAnswer:
        await self._check_robots(place, budget)
        with suppress(ConnectionError):  # many servers know no HEAD, and some hang up at it
            answer = await self._send("HEAD", place, budget, {})
            if answer.status < 400:
                return answer
        return await self._send("GET", place, budget, {}, body=False)

    async def read(self, format: str, answer: WebAnswer, **asked: Any) -> Any:
        """Return the title and the content of *answer*.

        Raises:
            ValueError: It cannot be read as *format*.
            TimeoutError: It took too long.
        """
        asked = {"url": answer.url, "type": answer.type, "charset": answer.charset, **asked}
        try:
            return await self._readers.read(format, answer.body, **asked)
        except (ValueError, TimeoutError) as error:
            raise type(error)(f"{answer.url}: {error}") from None

    # ---------------------------------------------------------------- one step

    async def _follow(self, url: str, ask: Callable[[httpx2.URL, Budget], Awaitable[WebAnswer]]) -> WebAnswer:
        """Return what *ask* brings from where *url* leads to in the end."""
        budget = Budget(self._limits.seconds, url)
        place = self._rule.check_url(url)
        for _ in range(self._limits.redirects + 1):
            answer = await ask(place, budget)
            if not _is_redirect(answer):
                return answer
            place = self._next(place, answer)
        raise ConnectionError(f"{url} redirects more than {self._limits.redirects} times; the last was to {place}")

    def _next(self, place: httpx2.URL, answer: WebAnswer) -> httpx2.URL:
        """Return where a redirect leads; it is looked at like the first address."""
        try:
            return self._rule.check_url(answer.headers["location"], place)
        except ValueError as error:
            raise ConnectionError(f"{place} redirects, but {error}") from None

    async def _get_once(self, place: httpx2.URL, budget: Budget, cache: bool, max_age: float | None) -> WebAnswer:
        store = self._cache if cache else None
        kept = await asyncio.to_thread(store.get, str(place)) if store else None
        if kept and kept.is_fresh(max_age, self._limits.fresh_seconds):
            return kept.answer
        await self._check_robots(place, budget)
        answer = await self._send("GET", place, budget, kept.conditions() if kept else {})
        if store and kept and answer.status == 304:
            return await asyncio.to_thread(store.confirm, kept, answer.headers)
        if store and answer.status == 200:
            await asyncio.to_thread(store.put, answer)
        return answer

    async def _send(
        self,
        method: str,
        place: httpx2.URL,
        budget: Budget,
        headers: Mapping[str, str],
        *,
        body: bool = True,
        max_bytes: int = 0,
    ) -> WebAnswer:
        await asyncio.to_thread(certificates)  # read once, which is not the page's time
        async with self._turn(place), budget.spend():
            return await self._requests.send(method, place, headers, body=body, max_bytes=max_bytes)

    # ---------------------------------------------------------------- manners

    @asynccontextmanager
    async def _turn(self, place: httpx2.URL) -> AsyncGenerator[None]:
        """Wait until the site may be asked: not too much at once, and not too often."""
        site = self._site(place)
        site.users += 1
        try:
            async with site.turns:
                pause = max(self._limits.pause_seconds, site.delay)
                start = max(time.monotonic(), site.next_start)
                site.next_start = start + pause
                await asyncio.sleep(start - time.monotonic())
                async with self._turns:
                    yield
        finally:
            site.users -= 1

    def _site(self, place: httpx2.URL) -> Site:
        origin = _origin(place)
        site = self._sites.pop(origin, None) or Site(asyncio.Semaphore(self._limits.per_host))
        self._sites[origin] = site  # the last is the one used last
        if len(self._sites) > MAX_SITES:
            unused = next((name for name, other in self._sites.items() if not other.users and other is not site), None)
            self._sites.pop(unused or "", None)
        return site

    async def _check_robots(self, place: httpx2.URL, budget: Budget) -> None:
        if not self._limits.robots:
            return
        site = self._site(place)
        async with site.asking:
            if site.rules is None or site.expires < time.monotonic():
                site.rules = await self._robots(place, budget)
                site.expires = time.monotonic() + ROBOTS_SECONDS
        if not site.rules:
            return
        agent = self._limits.user_agent.partition("/")[0]
        try:
            found = await self._readers.read("robots", site.rules, url=str(place), agent=agent)
        except (ValueError, TimeoutError) as error:
            raise PermissionError(f"{_origin(place)}/robots.txt cannot be read: {error}") from None
        site.delay = min(found["content"]["delay"], MAX_DELAY)
        if not found["content"]["allowed"]:
            raise PermissionError(
                f"{_origin(place)}/robots.txt asks programs not to fetch {place}; "
                "if you may, set tools.web.robots to false in your own configuration"
            )

    async def _robots(self, place: httpx2.URL, budget: Budget) -> bytes:
        """Return a site's rules; empty where it has none."""
        there = place.join("/robots.txt")
        for _ in range(self._limits.redirects + 1):
            try:
                answer = await self._send("GET", there, budget, {}, max_bytes=ROBOTS_BYTES)
            except ConnectionError as error:
                raise ConnectionError(f"{place} was not fetched: {error}") from None
            except ValueError:
                raise ConnectionError(
                    f"{there} is larger than {ROBOTS_BYTES:,} bytes, so whether {place} may be fetched is unknown"
                ) from None
            if answer.status >= 500:
                raise ConnectionError(f"{there} answered {answer.status}, so whether {place} may be fetched is unknown")
            if not _is_redirect(answer):
                return answer.body
            there = self._next(there, answer)
        return b""


def _is_redirect(answer: WebAnswer) -> bool:
    return answer.status in REDIRECTS and "location" in answer.headers


def _origin(place: httpx2.URL) -> str:
    host = f"[{place.host}]" if ":" in place.host else place.host
    port = place.port or PORTS[place.scheme]
    return f"{place.scheme}://{host}" + ("" if port == PORTS[place.scheme] else f":{port}")
