"""Both eras of the protocol, spoken byte by byte to a real server process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from faults.watched import Place, start_wire
from mcp_wire import WireReply, WireServer

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
ERAS = ("handshake", "modern")


@dataclass(frozen=True)
class Talk:
    """A conversation with a server in one of the eras."""

    wire: WireServer
    era: str

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> WireReply:
        """Send a request and return its answer."""
        return self.wire.wait(self.send(method, params))

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send a request as the era wants it and return its id."""
        given = dict(params or {})
        if self.era == "modern":
            given["_meta"] = MODERN | given.get("_meta", {})
        return self.wire.send(method, given)

    def send_run(self, command: str, **meta: Any) -> Any:
        """Call run and return the request's id."""
        arguments = {"name": "run", "arguments": {"command": command}}
        return self.send("tools/call", arguments | ({"_meta": meta} if meta else {}))

    def run(self, command: str) -> WireReply:
        """Call run and return the reply."""
        return self.wire.wait(self.send_run(command))

    def instructions(self) -> str:
        """Return what the server says of itself when it is met."""
        if self.era == "modern":
            return self.request("server/discover").result["instructions"]
        return self.wire.answers[1][0].result["instructions"]


def start_talk(place: Place, era: str) -> Talk:
    """Start a server in *place* and meet it as the era does."""
    return Talk(start_wire(place, handshake=era == "handshake"), era)
