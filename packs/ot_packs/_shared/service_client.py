"""Asks a web API on behalf of a pack: one place for time, size, retries, rate limits and plain errors.

Every failure is a built-in exception, so that a program can catch it by name:

    ValueError        the service says that the question is wrong
    LookupError       the service has no such thing
    PermissionError   the key is missing, refused, or does not cover this
    ConnectionError   the service cannot be reached
    TimeoutError      the time of the call is over
    RuntimeError      the rate limit is used up, or the service answers with something unusable
"""

from __future__ import annotations

import asyncio
import json
import math
import time
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from itertools import count
from typing import Any, cast
from urllib.parse import quote, urlsplit

import httpx2
from certificates import certificates
from gzip_body import GzipBody

from ot_sdk.network import retry_seconds

MAX_WAIT = 3600.0
MAX_MESSAGE = 300
TROUBLE = frozenset({500, 502, 503, 504})
TRIES = 3
"""How often a service in trouble, or one that hangs up, is asked; a rate limit is waited for while there is time."""
FIRST_PAUSE = 0.5
MAX_REDIRECTS = 4
EPOCH = 1e9
"""More seconds than anyone waits: a moment, counted from 1970."""
LARGEST = 1e15
FAILURES = (OSError, LookupError, RuntimeError, ValueError)
"""All that the module raises."""

Params = Sequence[tuple[str, str | int]]


@dataclass(frozen=True)
class WebService:
    """A web API, and what its users should know when it fails."""

    name: str
    pack: str
    url: str
    timeout: float
    max_bytes: int
    key: str = field(default="", repr=False)
    """The key, if any, which *headers* hold; it is taken out of every text that the service sends in an error."""
    key_hint: str = ""
    """What to do when the key is missing or refused."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True)
class ServiceAnswer:
    """What the service sent."""

    status: int
    headers: httpx2.Headers
    body: bytes

    def message(self) -> str:
        """Return all that an error says, in the forms that services use."""
        try:
            found: Any = json.loads(self.body)
        except (ValueError, RecursionError):
            return ""
        for path in (("error", "detail"), ("message",), ("error",), ("detail",)):
            if text := text_at(found, *path):
                return " ".join(text.split())
        return ""


class ServiceClient:
    """Asks one service, within the time of one call; use it through ``asking``."""

    def __init__(self, service: WebService, http: httpx2.AsyncClient) -> None:
        self.service = service
        self._http = http
        self._deadline = time.monotonic() + service.timeout
        self._not_before = 0.0

    async def json(self, *path: str, params: Params = (), headers: Mapping[str, str] | None = None) -> Any:
        """Return the JSON value at *path*, whose parts are quoted each.

        Raises:
            OSError, LookupError, RuntimeError, ValueError: As the module says.
        """
        answer = await self.get(*path, params=params, headers=headers)
        if answer.status >= 300:
            raise RuntimeError(f"{self.service.name} answered with status {answer.status}, which names no new address")
        return self.parse(answer)

    def parse(self, answer: ServiceAnswer) -> Any:
        """Return the JSON value of *answer*.

        Raises:
            RuntimeError: It is not JSON.
        """
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            raise RuntimeError(f"{self.service.name} answered with something that is not JSON") from None

    async def get(self, *path: str, params: Params = (), headers: Mapping[str, str] | None = None) -> ServiceAnswer:
        """Return the answer at *path*: a success, or a status of 300 to 399 that names no other place.

        Raises:
            OSError, LookupError, RuntimeError, ValueError: As the module says.
        """
        url = httpx2.URL(f"{self.service.url.rstrip('/')}/{'/'.join(map(_quote, path))}", params=list(params))
        for _ in range(MAX_REDIRECTS):
            answer = await self._ask(url, headers or {})
            target = answer.headers.get("location") if 300 <= answer.status < 400 else None
            if target is None:
                return answer
            url = self._same_place(url, target)
        raise RuntimeError(f"{self.service.name} redirects without end")

    def _same_place(self, url: httpx2.URL, target: str) -> httpx2.URL:
        """Return where a redirect leads, if that is the service itself: what a question holds goes nowhere else."""
        try:
            led = url.join(target)
        except httpx2.InvalidURL:
            led = None
        if led is None or (led.scheme, led.netloc) != (url.scheme, url.netloc) or led.userinfo:
            raise RuntimeError(f"{self.service.name} redirects to another place, which is not followed")
        return led

    async def _ask(self, url: httpx2.URL, headers: Mapping[str, str]) -> ServiceAnswer:
        """Return an answer below 400, asking again where that helps."""
        for attempt in count(1):
            await asyncio.sleep(max(0.0, self._not_before - time.monotonic()))
            backoff = FIRST_PAUSE * 2 ** min(attempt - 1, 6)
            try:
                answer = await self._send(url, headers)
            except httpx2.TransportError as error:
                if attempt >= TRIES or isinstance(error, httpx2.ConnectError):  # without a network, say so at once
                    raise ConnectionError(self._unreachable(error)) from None
                await asyncio.sleep(backoff)
                continue
            if answer.status < 400:
                return answer
            wait = retry_seconds(answer.headers) or _window_reset(answer.headers) or backoff
            if answer.status == 429 or (answer.status == 403 and answer.headers.get("x-ratelimit-remaining") == "0"):
                self._hold_back(wait, answer)
            elif answer.status in TROUBLE and attempt < TRIES and wait < self.seconds_left():
                await asyncio.sleep(wait)
            else:
                raise self._refusal(answer)
        raise AssertionError("count() has no end")

    async def _send(self, url: httpx2.URL, headers: Mapping[str, str]) -> ServiceAnswer:
        async with self._http.stream("GET", url, headers=dict(headers)) as response:
            return ServiceAnswer(response.status_code, response.headers, await self._body(response))

    async def _body(self, response: httpx2.Response) -> bytes:
        """Return the body, unpacked no further than its limit: a small one may unpack to gigabytes."""
        most, encoding = self.service.max_bytes, response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "", "gzip"):
            raise RuntimeError(f"{self.service.name} answered in an encoding that was not asked for")
        packed = GzipBody(most) if encoding == "gzip" else None
        body = bytearray()
        try:
            async for chunk in response.aiter_raw():
                body += packed.add(chunk) if packed else chunk
                if len(body) > most:
                    raise RuntimeError(f"{self.service.name} answered with more than {most:,} bytes: ask for less")
            if packed:
                packed.end()
        except zlib.error:
            raise RuntimeError(f"{self.service.name} answered with something that cannot be unpacked") from None
        return bytes(body)

    def _hold_back(self, wait: float, answer: ServiceAnswer) -> None:
        """Let every question of this call wait, if the call's time allows it."""
        if wait >= self.seconds_left():
            more = f" ({said})" if (said := self._quote_answer(answer)) else ""
            raise RuntimeError(f"the rate limit of {self.service.name} is used up: ask again in {wait:,.0f} s{more}")
        self._not_before = max(self._not_before, time.monotonic() + wait)

    def seconds_left(self) -> float:
        """Return the seconds that the call still has."""
        return self._deadline - time.monotonic()

    def _refusal(self, answer: ServiceAnswer) -> Exception:
        name, said = self.service.name, self._quote_answer(answer)
        because = f": {said}" if said else ""
        match answer.status:
            case 401:
                return PermissionError(f"{name} refused the key{because.rstrip('.')}. {self.service.key_hint}.")
            case 403:
                return PermissionError(f"{name} does not allow this, or not with this key's plan{because}")
            case 404:
                return LookupError(f"{name} has no such thing{because}")
            case 400 | 422:
                return ValueError(f"{name} refused the question{because}")
            case status:
                return RuntimeError(f"{name} answered with status {status}{because}")

    def _quote_answer(self, answer: ServiceAnswer) -> str:
        """Return what *answer* says, in short, without the key, and without what a terminal would obey."""
        text = answer.message()
        if self.service.key:
            text = text.replace(self.service.key, "[key]")  # before it is cut, as half a key is much of a key
        return "".join(character if character.isprintable() else " " for character in text[:MAX_MESSAGE])

    def _unreachable(self, error: httpx2.TransportError) -> str:
        host = urlsplit(self.service.url).netloc
        problem = "no connection" if isinstance(error, httpx2.ConnectError) else type(error).__name__
        return (
            f"{self.service.name} cannot be reached at {host} ({problem}): see that this machine has a network, and "
            "set HTTPS_PROXY for the server if it needs a proxy"
        )


@asynccontextmanager
async def asking(service: WebService) -> AsyncGenerator[ServiceClient]:
    """Yield what asks *service* until its time is over.

    Redirects are followed within the service only: what a question holds goes nowhere else.
    """
    try:
        async with asyncio.timeout(service.timeout), _client(service) as http:
            yield ServiceClient(service, http)
    except TimeoutError:
        where = f"tools.{service.pack}.timeout"
        raise TimeoutError(f"{service.name} did not answer within {service.timeout:g} s ({where})") from None


async def ask_each[Question, Answer](
    service: WebService,
    questions: Sequence[Question],
    ask: Callable[[ServiceClient, Question], Awaitable[Answer]],
    parallel: int,
) -> list[Answer | Exception]:
    """Return what *ask* makes of each question, or why nothing; what has come when the time is over is kept.

    Raises:
        OSError, LookupError, RuntimeError, ValueError: Nothing came of any question; the first says why.
    """
    free = asyncio.Semaphore(parallel)

    async def one(api: ServiceClient, question: Question) -> Answer | Exception:
        async with free:
            try:
                return await ask(api, question)
            except FAILURES as error:
                return error

    tasks: list[asyncio.Task[Answer | Exception]] = []
    over: Exception | None = None
    try:
        async with asking(service) as api:
            tasks = [asyncio.create_task(one(api, question)) for question in questions]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
    except TimeoutError as error:
        if not tasks:
            raise
        over = error
    answers = [over if over and task.cancelled() else task.result() for task in tasks]
    failed = [answer for answer in answers if isinstance(answer, Exception)]
    if failed and len(failed) == len(answers):
        raise failed[0]
    return answers


# ---------------------------------------------------------------- settings and arguments


def check_url(name: str, url: str, hosts: Sequence[str] = ()) -> None:
    """Refuse an address that cannot be asked; with *hosts*, one that would carry a key elsewhere or in the clear.

    Raises:
        ValueError: The sentence names the setting.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError(f"{name} is not an address: {url!r:.200}") from None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment or not url.isprintable():
        raise ValueError(f"{name} must be like https://host/path, not {url!r:.200}")
    if parts.username or parts.password:
        raise ValueError(f"{name} must not hold a name or a password")
    if hosts and not _is_loopback(host) and (parts.scheme != "https" or host not in hosts):
        raise ValueError(f"{name} must be on https://{hosts[0]}, the only place that the key is sent to")


def check_timeout(name: str, seconds: float) -> None:
    """Refuse a time that no call can have.

    Raises:
        ValueError: The sentence names the setting.
    """
    if not 0 < seconds <= MAX_WAIT:
        raise ValueError(f"{name} must be more than 0 and at most {MAX_WAIT:,.0f}, not {seconds}")


def check_key(name: str, key: str) -> str:
    """Return *key* without the space around it.

    Raises:
        PermissionError: It holds what no key holds; the key itself is not in the sentence.
    """
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise PermissionError(f"the secret {name} is empty, or holds characters that no key has: set it again")
    return key


# ---------------------------------------------------------------- reading answers


def at(value: Any, *path: str) -> Any:
    """Return what lies below *value* at *path*, or None: a service may leave anything out."""
    for key in path:
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value


def text_at(value: Any, *path: str) -> str:
    """Return the text there, or an empty one."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def number_at(value: Any, *path: str) -> float | int | None:
    """Return the number there, or None."""
    found = at(value, *path)
    return found if type(found) in (int, float) and -LARGEST < found < LARGEST else None


def list_at(value: Any, *path: str) -> list[Any]:
    """Return the list there, or an empty one."""
    found = at(value, *path)
    return cast("list[Any]", found) if isinstance(found, list) else []


def rows_at(value: Any, *path: str) -> list[dict[str, Any]]:
    """Return the objects in the list there."""
    return [row for row in list_at(value, *path) if isinstance(row, dict)]


# ---------------------------------------------------------------- inside


def _client(service: WebService) -> httpx2.AsyncClient:
    """Return what asks; its time is that of the call."""
    headers = {"accept": "application/json", "accept-encoding": "gzip", "user-agent": "onetool", **service.headers}
    here = _is_loopback(urlsplit(service.url).hostname or "")  # a proxy would be another place for a key
    trusted = certificates()
    try:
        return httpx2.AsyncClient(headers=headers, timeout=None, verify=trusted, trust_env=not here)
    except (ImportError, ValueError, httpx2.InvalidURL):  # what they say may hold a part of the proxy's password
        raise ConnectionError(
            "the proxy that the environment names cannot be used: HTTP_PROXY and HTTPS_PROXY must be like "
            "http://host:port, with special characters of a password in percent signs"
        ) from None


def _quote(part: str) -> str:
    if part in ("", ".", ".."):
        raise ValueError(f"{part!r} cannot be a part of an address")
    return quote(part, safe="@")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _window_reset(headers: httpx2.Headers) -> float:
    """Return when the last of the windows that are used up begins anew: ``1, 1419704`` with ``0, 15`` left is 1 s."""
    resets = [_seconds(part) for part in headers.get("x-ratelimit-reset", "").split(",")]
    left = [part.strip() for part in headers.get("x-ratelimit-remaining", "").split(",")]
    if len(left) != len(resets):
        return resets[0]
    return max((reset for reset, rest in zip(resets, left, strict=True) if rest == "0"), default=resets[0])


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    if EPOCH < seconds < math.inf:  # some name the moment instead
        seconds -= time.time()
    return min(max(0.0, seconds), EPOCH)
