"""QuestionIds: the ids of what a server asks its client, which no other server of that client has used."""

from __future__ import annotations

import secrets
from typing import Any

import mcp_types as types
from mcp.shared.dispatcher import coerce_request_id

SPREAD = 1 << 30
"""A sum with a small number still fits 32 bits, which is all that some clients read."""
CANCELLED = "notifications/cancelled"


class QuestionIds:
    """Shifts ids by a number of this connection's own.

    A client may outlive the server that asked it. Its late answer must not be taken for that to a question of the
    next server, whose count begins again at one.
    """

    def __init__(self) -> None:
        """Draw the number."""
        self._shift = secrets.randbelow(SPREAD)

    def asked(self, message: types.JSONRPCMessage) -> types.JSONRPCMessage:
        """Return *message* as the client is to see it: a question, or that one is no longer asked."""
        if isinstance(message, types.JSONRPCRequest):
            return message.model_copy(update={"id": self._shifted(message.id, self._shift)})
        if isinstance(message, types.JSONRPCNotification) and message.method == CANCELLED and message.params:
            shifted = self._shifted(message.params.get("requestId"), self._shift)
            return message.model_copy(update={"params": {**message.params, "requestId": shifted}})
        return message

    def answered[T: types.JSONRPCResponse | types.JSONRPCError](self, message: T) -> T:
        """Return the client's *message* with the id that the server knows; no question has that of a late one."""
        return message.model_copy(update={"id": self._shifted(message.id, -self._shift)})

    @staticmethod
    def _shifted(id: Any, by: int) -> Any:
        number = coerce_request_id(id)
        return number + by if isinstance(number, int) else id
