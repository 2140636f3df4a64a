"""The two streams of the older transport: events come over one long GET, messages go by POST to where it says."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import httpx2
from mcp import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, ErrorData, JSONRPCRequest
from mcp_types.jsonrpc import jsonrpc_message_adapter

from ot.servers.failure_words import failure_words
from ot.servers.http_replies import error_message, origin_of
from ot.servers.messages import MessageStream
from ot.servers.reply_faults import Refused

logger = logging.getLogger(__name__)


class EventReader(MessageStream):
    """Gives the messages of a stream of events; one that is malformed is skipped."""

    def __init__(self, response: httpx2.Response, most: int) -> None:
        """Read the events of *response*, each of *most* bytes at most."""
        self.ended = False
        self._response = response
        self._events = aiter(httpx2.EventSource(response, max_event_size=most))

    async def endpoint(self) -> httpx2.URL:
        """Return where messages go, which is the first event.

        Raises:
            Refused: It is at another origin.
            httpx2.HTTPError: The stream is not one of events, or broke off.
        """
        async for event in self._events:
            if event.event == "endpoint":
                return self._within_origin(event.data)
        raise httpx2.RemoteProtocolError("its stream of events ended before it said where messages go")

    def _within_origin(self, address: str) -> httpx2.URL:
        url = self._response.request.url
        found = url.join(address)
        here, there = origin_of(url), origin_of(found)
        if here != there:
            raise Refused(f"it is at {here} but wants messages at {there}, where nothing was sent: tell its maker")
        return found

    def __aiter__(self) -> EventReader:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            async for event in self._events:
                if event.event == "message" and event.data and (message := _message(event.data)):
                    return message
        except httpx2.HTTPError as error:
            logger.debug("the stream of events was lost: %s", error)
        self.ended = True
        raise StopAsyncIteration

    async def receive(self) -> SessionMessage:
        try:
            return await anext(self)
        except StopAsyncIteration:
            raise anyio.EndOfStream from None


def _message(data: str) -> SessionMessage | None:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(data, by_name=False))
    except ValueError:
        logger.warning("an event that is not a message is skipped: %r", data[:200])
        return None


class MessagePoster(MessageStream):
    """Posts each message in the task of whoever sends it, so that its failure is that call's alone."""

    def __init__(self, client: httpx2.AsyncClient, endpoint: httpx2.URL) -> None:
        """Post to *endpoint*."""
        self._client = client
        self._endpoint = endpoint

    async def send(self, item: SessionMessage, /) -> None:
        if self.closed:
            raise anyio.ClosedResourceError
        message: Any = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        try:
            response = await self._client.post(self._endpoint, json=message)
        except (httpx2.HTTPError, Refused) as error:
            refusal = ErrorData(code=CONNECTION_CLOSED, message=failure_words(error))
        else:
            if response.is_success:
                return
            refusal = error_message(response) or ErrorData(
                code=INTERNAL_ERROR, message=f"it answered HTTP {response.status_code}"
            )
        if isinstance(item.message, JSONRPCRequest):
            raise MCPError.from_error_data(refusal)
        logger.debug("a message was lost: %s", refusal.message)
