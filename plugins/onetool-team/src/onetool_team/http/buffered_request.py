"""BufferedRequest: a request whose body is read before it is known who answers it."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, cast

import orjson

from onetool_team.http.answers import failure, send_json
from onetool_team.http.asgi import REQUEST_ID, Message, Receive, Scope, Send

RUN = "tools/call"
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
NOT_JSON = (
    "the request's body is not JSON in UTF-8: {why}. NaN, Infinity and numbers beyond a float are not JSON either"
)
NOT_ONE = "the request's body must be one JSON object. Send several requests one by one"


class NotARequest(Exception):
    """The body is not one JSON-RPC message."""

    def __init__(self, message: str, code: int) -> None:
        """Say what is wrong; *code* is JSON-RPC's."""
        super().__init__(message)
        self.code = code


class BufferedRequest:
    """A request whose body has been read, and is read once more by whoever answers it."""

    def __init__(self, receive: Receive) -> None:
        """Read from *receive*."""
        self._receive = receive
        self._body: bytes | None = b""
        self._request: dict[str, Any] = {}
        self._ending: asyncio.Task[Message] | None = None

    async def read(self) -> bool:
        """Read the body, and return whether it came whole.

        The libraries that answer have parsers of their own, which take more than JSON: other encodings, NaN, half
        characters. A body passes only if it is strict JSON, which all of them read alike, so none runs uncounted.

        Raises:
            NotARequest: It is not one JSON object in UTF-8.
        """
        parts: list[bytes] = []
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                return False
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                break
        self._body = b"".join(parts)
        try:
            content = orjson.loads(self._body)
        except orjson.JSONDecodeError as error:
            raise NotARequest(NOT_JSON.format(why=error), PARSE_ERROR) from None
        if not isinstance(content, dict):
            raise NotARequest(NOT_ONE, INVALID_REQUEST)
        self._request = cast("dict[str, Any]", content)
        return True

    @property
    def is_run(self) -> bool:
        """Whether it calls a tool."""
        return self._request.get("method") == RUN

    @property
    def goes_on(self) -> bool:
        """Whether it answers a question of a run that began before."""
        params = self._request.get("params")
        return isinstance(params, dict) and "requestState" in params

    @property
    def id(self) -> Any:
        """The id that an answer must have."""
        found = self._request.get("id")
        return found if isinstance(found, str | int) else None

    def ending(self) -> asyncio.Task[Message]:
        """Return what ends when the sender leaves."""
        if self._ending is None:

            async def wait_for_end() -> Message:
                return await self._receive()

            self._ending = asyncio.ensure_future(wait_for_end())
        return self._ending

    def close(self) -> None:
        """Listen no more."""
        if self._ending is not None:
            self._ending.cancel()

    async def receive(self) -> Message:
        """Return the body, and after it what comes."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        if self._ending is not None:
            return await asyncio.shield(self._ending)
        return await self._receive()


async def read_request(scope: Scope, receive: Receive, send: Send) -> BufferedRequest | None:
    """Return the request with its body; nothing if that did not come whole, or was malformed, which is answered."""
    request = BufferedRequest(receive)
    try:
        return request if await request.read() else None
    except NotARequest as wrong:
        body = failure(str(wrong), HTTPStatus.BAD_REQUEST, scope.get(REQUEST_ID, ""))
        body["error"]["code"] = wrong.code
        await send_json(send, HTTPStatus.BAD_REQUEST, body)
        return None
