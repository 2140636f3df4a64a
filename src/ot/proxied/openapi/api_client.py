"""ApiClient: sends an operation's request to the API, and says in words what became of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import httpx2
from fastmcp.exceptions import ToolError

from ot.proxied.auth.token_auth import TokenAuth
from ot.proxied.call_trace import current_trace, note_refusal
from ot.proxied.guarded_client import GuardedClient
from ot.proxied.http_replies import BoundedBody
from ot.proxied.internal_addresses import AddressRule
from ot.proxied.reply_faults import Refused
from ot.proxied.spec import ServerSpec
from ot.registry.clean_text import clean_line
from ot_sdk.network import retry_seconds
from ot_sdk.redaction import Redact

READ_SECONDS = 300.0
GRACE_SECONDS = 5.0
"""A call's own limit ends first, and says so in its own words."""
MAX_REDIRECTS = 5
MAX_WORDS = 600
READING = ("GET", "HEAD", "OPTIONS")
UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
OWN_HEADERS = "ot.headers"
MESSAGES = ("message", "error_description", "detail", "details", "title", "reason", "msg", "error", "errors")
"""Where APIs put the sentence that says what is wrong, the most telling first."""
ADVICE: Mapping[int, str] = {
    400: "check the arguments",
    401: "check the headers of the server {name}",
    403: "these credentials may not do that; check the headers of the server {name}",
    404: "check the arguments, and the url of the server {name}",
    405: "check the url of the server {name}, or whether its document is out of date",
    409: "it conflicts with what is there; read that first",
    410: "it is gone for good",
    415: "check the arguments",
    422: "check the arguments",
}
UNKNOWN = "it may have happened all the same: check before you repeat it"


def api_client(spec: ServerSpec) -> ApiClient:
    """Return a client for the API at the address of *spec*; what its query holds goes with every request."""
    address = urlsplit(spec.url)
    read = max(READ_SECONDS, (spec.call_seconds or 0) + GRACE_SECONDS)
    return ApiClient(
        spec.name,
        AddressRule(*spec.rule),
        lambda text: spec.redactor().text(text),
        auth=TokenAuth(spec.account, note_refusal) if spec.account else None,
        base_url=address._replace(query="", fragment="").geturl(),
        params=dict(parse_qsl(address.query)),
        headers=dict(spec.headers),
        timeout=httpx2.Timeout(spec.start_seconds, read=read),
        event_hooks={"response": [_limit_response]},
    )


class ApiClient(GuardedClient):
    """A client whose failures are sentences for a program; credentials go to its own origin and nowhere else."""

    def __init__(self, name: str, rule: AddressRule, redact: Redact = str, **options: Any) -> None:
        """Reach the API of the server *name* as far as *rule* lets it.

        *redact* takes secrets out of a refusal before it is cut.
        """
        # What one call was given is not told to the next one, which may be another program's.
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        super().__init__(rule, cookies=no_cookies, **options)
        self._name = name
        self._redact = redact

    def build_request(self, *args: Any, **kwargs: Any) -> httpx2.Request:
        """Return a request that remembers its own headers: FastMCP adds those of whoever called the server."""
        request = super().build_request(*args, **kwargs)
        request.extensions = {**request.extensions, OWN_HEADERS: request.headers.copy()}
        return request

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Return the answer of the API.

        Raises:
            ToolError: There is none, or it is not one of success, text or JSON.
        """
        request.headers = request.extensions.get(OWN_HEADERS, request.headers)
        if trace := current_trace.get():
            trace.sent = True
        try:
            response = await self._send_and_follow(request, options)
        except Refused as error:
            raise _failure(f"{_describe_request(request)}: {error}") from error
        except (httpx2.RequestError, httpx2.StreamError) as error:
            raise _failure(_describe_loss(request, error)) from error
        if not response.is_success:
            raise _failure(self._refusal_words(response))
        _refuse_data(response)
        return response

    async def _send_and_follow(self, request: httpx2.Request, options: Mapping[str, Any]) -> httpx2.Response:
        for _ in range(MAX_REDIRECTS):
            response = await super().send(request, **options)
            following = response.next_request
            if following is None:
                return response
            if _origin(following.url) != _origin(request.url):
                where = f"{following.url.scheme}://{following.url.netloc.decode()}"
                advice = f"if that is right, set the url of the server {self._name} to it"
                text = f"HTTP {response.status_code}: it redirects to {where}, and nothing is sent there: {advice}"
                raise _failure(f"{_describe_request(request)}: {text}")
            request = following
        raise _failure(f"{_describe_request(request)}: it redirects more than {MAX_REDIRECTS} times")

    def _refusal_words(self, response: httpx2.Response) -> str:
        status, request = response.status_code, response.request
        said = message_of(response, self._redact)
        text = f"{_describe_request(request)}: HTTP {status} {response.reason_phrase}".rstrip() + (
            f": {said}" if said else ""
        )
        if status == 429:
            pause = retry_seconds(response.headers)
            advice = f"wait {'a while' if pause is None else f'{pause:,.0f} s'} before you ask again"
        elif status >= 500:
            advice = "the API failed; try again later" if request.method in READING else UNKNOWN
        else:
            advice = ADVICE.get(status, "").format(name=self._name)
        return f"{text} ({advice})" if advice else text


def message_of(response: httpx2.Response, redact: Redact = str) -> str:
    """Return the message in the body of a refusal, on one line and redacted."""
    try:
        said = "; ".join(dict.fromkeys(_sentences(json.loads(response.content))))
    except (ValueError, RecursionError):
        kind = response.headers.get("content-type", "")
        said = response.text if kind.startswith("text/plain") else ""
    return clean_line(redact(said), MAX_WORDS)


def _sentences(body: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(body, str):
        yield body
    elif isinstance(body, list) and depth < 4:
        for part in cast("list[Any]", body)[:5]:
            yield from _sentences(part, depth + 1)
    elif isinstance(body, dict) and depth < 4:
        found = cast("dict[str, Any]", body)
        place = found.get("loc") or found.get("field") or found.get("param")
        names = ".".join(map(str, cast("list[Any]", place))) if isinstance(place, list) else place
        inner = [word for key in MESSAGES if found.get(key) for word in _sentences(found[key], depth + 1)]
        yield from (f"{names}: {word}" if isinstance(names, str) else word for word in inner)


def _describe_loss(request: httpx2.Request, error: Exception) -> str:
    said = clean_line(str(error), MAX_WORDS) or type(error).__name__
    if isinstance(error, UNSENT):
        return f"{_describe_request(request)}: no connection to {request.url.netloc.decode()}: {said}; nothing was sent"
    why = "no answer in time" if isinstance(error, httpx2.TimeoutException) else f"the connection was lost: {said}"
    return f"{_describe_request(request)}: {why}" + ("" if request.method in READING else f"; {UNKNOWN}")


def _refuse_data(response: httpx2.Response) -> None:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind.startswith(("image/", "audio/", "video/", "font/")) or kind in (
        "application/octet-stream",
        "application/pdf",
        "application/zip",
        "application/gzip",
    ):
        size = f"{len(response.content):,} bytes"
        raise _failure(
            f"{_describe_request(response.request)}: it answered with {kind} ({size}), which is neither text nor JSON"
        )


def _failure(text: str) -> ToolError:
    # The caller tells of it; FastMCP's own line on standard error would be a second one.
    return ToolError(text, log_level=logging.DEBUG)


def _describe_request(request: httpx2.Request) -> str:
    # Without the query, which may hold a key.
    return f"{request.method} {request.url.path}"


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


async def _limit_response(response: httpx2.Response) -> None:
    response.stream = BoundedBody(response)
