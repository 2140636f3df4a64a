"""What a server answers over HTTP: bounded, checked, and never taken for more than it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import httpx2
import orjson
from mcp_types import ErrorData

from ot.proxied.call_trace import CallTrace
from ot.proxied.messages import MAX_BYTES, MAX_PARTS
from ot.proxied.reply_faults import Refused, UnusableReply
from ot.values.parts import MARKS, has_many_parts
from ot_sdk.network import retry_seconds

MAX_REPLY_BYTES = MAX_BYTES
EVENTS = "text/event-stream"
JSON = "application/json"
KEEPS_METHOD = frozenset({307, 308})


class BoundedBody(httpx2.AsyncByteStream):
    """A body of no more bytes and parts than can be read in a moment; in a stream of events, each event."""

    def __init__(self, response: httpx2.Response, trace: CallTrace | None = None) -> None:
        """Give the body of *response*, as long as anybody waits for what *trace* tells of."""
        self._trace = trace
        self._stream: Any = response.stream
        self._events = _kind(response).startswith(EVENTS)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held: list[bytes] = []
        size = marks = 0
        suspicious = MAX_PARTS
        async for chunk in self._stream:
            if self._trace and self._trace.over:
                raise httpx2.StreamError("the request was cancelled")
            if self._events and (b"\n\n" in chunk or b"\r\n\r\n" in chunk):
                held, size, marks, suspicious = [], 0, 0, MAX_PARTS
            held.append(chunk)
            size += len(chunk)
            marks += sum(chunk.count(mark) for mark in MARKS)
            if size > MAX_REPLY_BYTES and not self._events:  # an event's size is the library's to bound
                raise httpx2.StreamError(f"the reply is larger than {MAX_REPLY_BYTES:,} bytes")
            if marks > suspicious:  # unless most of them stand in texts
                suspicious = 2 * marks
                if has_many_parts(b"".join(held), MAX_PARTS):
                    raise httpx2.StreamError(f"the reply holds more than {MAX_PARTS:,} parts")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _kind(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").lower()


# ---------------------------------------------------------------- answers


async def usable_reply(request: httpx2.Request, response: httpx2.Response, id: Any) -> httpx2.Response:
    """Return the *response* to the request *id*, read whole unless it is a stream of events.

    Raises:
        UnusableReply: It is something else, or broke off.
        httpx2.HTTPError: The connection was lost meanwhile.
    """
    kind = _kind(response)
    if kind.startswith(EVENTS):
        return response
    if not kind.startswith(JSON) or response.status_code == 202:
        what = f"HTTP {response.status_code} and {kind[:80] or 'no content type'}"
        raise UnusableReply(f"it answered with {what} instead of JSON or a stream of events; {_advice(request)}")
    try:
        message: Any = orjson.loads(await response.aread())
    except httpx2.TransportError as error:
        raise UnusableReply(f"its reply broke off: {error}") from error
    except ValueError:
        what = f"its reply of {len(response.content):,} bytes is not JSON, or not all of it"
        raise UnusableReply(f"{what}; {_advice(request)}") from None
    return _of_request(request, response, message, id)


def _of_request(request: httpx2.Request, response: httpx2.Response, message: Any, id: Any) -> httpx2.Response:
    said = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
    if not said.keys() & {"result", "error"}:
        raise UnusableReply(f"its reply is JSON, but not an MCP message; {_advice(request)}")
    if "error" in said and said.get("id") is None:  # an unreadable request has no id, so its answer would reach nobody
        content = orjson.dumps({**said, "id": id})
        return httpx2.Response(200, headers={"content-type": JSON}, content=content, request=request)
    if str(said.get("id")) != str(id):
        raise UnusableReply("its reply is to another request: this is a fault in the server")
    return response


def _advice(request: httpx2.Request) -> str:
    return f"check that {origin_of(request.url)}{request.url.path} is the address of an MCP server"


def error_message(response: httpx2.Response) -> ErrorData | None:
    """Return the error of the protocol that a refusal, read whole, holds."""
    if not _kind(response).startswith(JSON):
        return None
    try:
        message: Any = orjson.loads(response.content)
        return ErrorData.model_validate(message["error"])
    except (ValueError, TypeError, KeyError):
        return None


def rpc_error(request: httpx2.Request, id: Any, code: int, message: str) -> httpx2.Response:
    """Return a response that holds an error of the protocol."""
    error = {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}
    return httpx2.Response(200, headers={"content-type": JSON}, content=orjson.dumps(error), request=request)


# ---------------------------------------------------------------- refusals


def pause_asked(response: httpx2.Response) -> float | None:
    """Return the pause that the server asks for with 429 or 503, in seconds, if it does."""
    return retry_seconds(response.headers) if response.status_code in (429, 503) else None


def refuse_redirect(response: httpx2.Response) -> None:
    """Let pass what leads elsewhere within the same origin, by the same method; the library follows that.

    Raises:
        Refused: The response leads to another origin, or would lose the request's body.
    """
    following = response.next_request
    if following is None:
        return
    request = response.request
    here, there = origin_of(request.url), origin_of(following.url)
    unknown = request.method == "POST" and response.status_code not in KEEPS_METHOD
    if not (here == there or _is_upgrade(request.url, following.url)):
        raise Refused(
            f"it redirects from {here} to {there}, and neither the request nor its headers were sent there. "
            f"If {there} is right, write its address into the server's url",
            unknown=unknown,
        )
    if following.method != request.method or following.url.userinfo != request.url.userinfo:
        why = f"it redirects to {there}{following.url.path}, which was not followed: write that into the server's url"
        raise Refused(why, unknown=unknown)


def origin_of(url: httpx2.URL) -> str:
    """Return scheme, host and port, without what may be secret."""
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{url.scheme}://{host}" + (f":{url.port}" if url.port else "")


def _is_upgrade(url: httpx2.URL, to: httpx2.URL) -> bool:
    return (url.scheme, to.scheme, url.host, url.port, to.port) == ("http", "https", to.host, None, None)
