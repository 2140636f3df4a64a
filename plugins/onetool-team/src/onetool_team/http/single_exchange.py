"""A call of a client of the handshake era that wants no progress: answered as JSON, without a stream in between."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import orjson
from mcp.server.connection import Connection
from mcp.server.lowlevel.server import Server
from mcp.server.runner import serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import DEFAULT_NEGOTIATED_VERSION, INTERNAL_ERROR, ErrorData
from starlette.requests import Request

logger = logging.getLogger(__name__)

METHOD = "tools/call"
MEMBERS = frozenset({"jsonrpc", "id", "method", "params"})
PROGRESS = b'"progressToken"'
FAILED = ErrorData(code=INTERNAL_ERROR, message="the server failed to answer; its operator finds it in the log")


@dataclass(frozen=True)
class SingleCall:
    """What the request says, once it is known to be such a call."""

    number: str | int
    params: Mapping[str, Any] | None
    version: str

    @classmethod
    def read(cls, request: Request, body: bytes) -> SingleCall | None:
        """Return the call; nothing for any other message, and for what is not to be answered this way."""
        if PROGRESS in body or not _takes_json(request):
            return None
        try:
            found: Any = orjson.loads(body)
        except orjson.JSONDecodeError:
            return None
        if not _is_call(found):
            return None
        version = request.headers.get("mcp-protocol-version", DEFAULT_NEGOTIATED_VERSION)
        return cls(found["id"], found.get("params"), version)

    async def answer_with(self, server: Server[Any], state: Any, request: Request) -> bytes:
        """Return the body of the answer of *server*, whose lifespan has given *state*."""
        connection = Connection.from_envelope(self.version, None, None)
        asked = SingleExchange(self.number, ServerMessageMetadata(request_context=request), _transport(request))
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": self.number}
        try:
            answer["result"] = await serve_one(
                server, asked, METHOD, self.params, connection=connection, lifespan_state=state
            )
        except Exception as error:
            told = handler_exception_to_error_data(error)
            if told is None:
                logger.exception("a call failed")
            answer["error"] = (told or FAILED).model_dump(mode="json", by_alias=True, exclude_none=True)
        return json.dumps(answer, separators=(",", ":")).encode()


def _is_call(found: Any) -> bool:
    if not isinstance(found, dict) or not MEMBERS.issuperset(message := cast("dict[str, Any]", found)):
        return False
    is_request = message.get("jsonrpc") == "2.0" and type(message.get("id")) in (str, int)
    return is_request and message.get("method") == METHOD and isinstance(message.get("params", {}), dict)


def _takes_json(request: Request) -> bool:
    accept, kind = request.headers.get("accept", ""), request.headers.get("content-type", "")
    return ("application/json" in accept or "*/*" in accept) and kind.partition(";")[0].strip() == "application/json"


def _transport(request: Request) -> TransportContext:
    return TransportContext(kind="streamable-http", can_send_request=False, headers=request.headers)


@dataclass
class SingleExchange:
    """What the library knows of a request while it answers: nothing can be sent but the answer."""

    request_id: str | int
    message_metadata: ServerMessageMetadata
    transport: TransportContext
    can_send_request: bool = field(default=False, init=False)
    cancel_requested: anyio.Event = field(default_factory=anyio.Event, init=False)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Refuse: the client's answer would find nobody.

        Raises:
            NoBackChannelError: Always.
        """
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Drop it."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Drop it: nobody asked."""
