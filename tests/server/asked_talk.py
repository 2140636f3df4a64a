"""A client that can be asked, in both eras of the protocol, spoken byte by byte to a real server process."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bed import Bed
from faults.watched import Place
from faults.wire_eras import MODERN
from mcp_wire import HANDSHAKE, WireReply, WireServer

SERVER = (sys.executable, str(Path(__file__).parent / "ask_server.py"))
CAPABILITIES: Mapping[str, Any] = {"elicitation": {"form": {}}}
YES: Mapping[str, Any] = {"action": "accept", "content": {"decision": "allow"}}
NO: Mapping[str, Any] = {"action": "decline"}

BIN = '''
__ot_destructive__ = ["delete"]


def delete(item: int, log: str) -> int:
    """Delete something, and write that down."""
    with open(log, "a") as file:
        file.write(f"{item}\\n")
    return item
'''
"""A pack of the user's own, which runs in a worker."""


def place(root: Path, config: str = "") -> Bed:
    """Return the directories of one server, with the user's own pack ``bin``."""
    return add_pack(Place.make(root, config or "logs: {level: WARNING}\n"))


def add_pack(bed: Bed) -> Bed:
    """Give the user the pack ``bin``."""
    bed.user_file(BIN, "tools/bin/bin_tools.py")
    return bed


@dataclass
class AskedTalk:
    """A conversation in one of the eras with a server that may ask back."""

    wire: WireServer
    where: Bed
    era: str
    capabilities: Mapping[str, Any] = field(default_factory=lambda: CAPABILITIES)
    questions: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])

    @classmethod
    def start(
        cls,
        where: Bed,
        era: str,
        capabilities: Mapping[str, Any] = CAPABILITIES,
        command: Sequence[str] = SERVER,
    ) -> AskedTalk:
        """Start a server in *where* and meet it."""
        wire = WireServer.start(command, cwd=where.cwd, env=where.environment(), handshake=False)
        if era == "handshake":
            wire.request("initialize", HANDSHAKE | {"capabilities": dict(capabilities)})
            wire.notify("notifications/initialized")
        return cls(wire, where, era, capabilities)

    def anew(self) -> AskedTalk:
        """Return the conversation as if nothing had been deleted or asked."""
        for name in ("deleted.txt", "always.txt"):
            (self.where.cwd / name).unlink(missing_ok=True)
        self.questions.clear()
        return self

    @property
    def deleted(self) -> list[int]:
        """What the tools wrote down."""
        file = self.where.cwd / "deleted.txt"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def call(self, command: str, **more: Any) -> WireReply:
        """Call run and return the answer, which may be that input is required."""
        return self.wire.wait(self.send(command, **more))

    def send(self, command: str, **more: Any) -> Any:
        """Call run and return the request's id."""
        params: dict[str, Any] = {"name": "run", "arguments": {"command": command}, **more}
        if self.era == "modern":
            meta = MODERN | {"io.modelcontextprotocol/clientCapabilities": dict(self.capabilities)}
            params["_meta"] = meta | params.get("_meta", {})
        return self.wire.send("tools/call", params)

    def run(self, command: str, *answers: Mapping[str, Any]) -> WireReply:
        """Call run, answer its questions with *answers* one by one, and return the reply."""
        return (self._run_modern if self.era == "modern" else self._run_handshake)(command, list(answers))

    def _run_modern(self, command: str, answers: list[Mapping[str, Any]]) -> WireReply:
        reply = self.call(command)
        while reply.result.get("resultType") == "input_required":
            (key,) = reply.result["inputRequests"]
            self.questions.append(reply.result["inputRequests"][key]["params"])
            state = reply.result["requestState"]
            reply = self.call(command, requestState=state, inputResponses={key: answers.pop(0)})
        assert not answers
        return reply

    def _run_handshake(self, command: str, answers: list[Mapping[str, Any]]) -> WireReply:
        seen = len(self.requests)
        number = self.send(command)
        for answer in answers:
            asked = self.question(seen)
            seen += 1
            self.questions.append(asked["params"])
            self.answer(asked["id"], answer)
        return self.wire.wait(number)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The server's own requests so far."""
        return [message for message in self.wire.notifications if message["method"] == "elicitation/create"]

    def question(self, number: int, timeout: float = 20.0) -> dict[str, Any]:
        """Return the server's request of that number, when it comes."""
        end = time.monotonic() + timeout
        with self.wire._news:
            self.wire._news.wait_for(lambda: len(self.requests) > number, end - time.monotonic())
        return self.requests[number]

    def answer(self, number: Any, result: Mapping[str, Any]) -> None:
        """Answer a request of the server's."""
        self.reply({"id": number, "result": dict(result)})

    def reply(self, message: Mapping[str, Any]) -> None:
        """Send an answer as it is."""
        self.wire.send_raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
