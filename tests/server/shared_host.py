"""One host that several clients share, each over a socket of its own, as a shared server serves them."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ot.config.paths import Paths
from ot.host import Host
from ot.server.connection import ClientProcess, Connection

SECONDS = 20.0
HANDSHAKE = {"protocolVersion": "2025-06-18", "clientInfo": {"name": "talk", "version": "1"}}


class SocketTalk:
    """A raw client: it sends lines, and keeps what comes: answers by id, questions and notifications in turn."""

    def __init__(self, connection: Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection = connection
        self.writer = writer
        self.serving: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.questions: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.notifications: list[dict[str, Any]] = []
        self._reader = reader
        self._answers: dict[Any, asyncio.Future[dict[str, Any]]] = {}
        self.last_id = 0
        self._listening = asyncio.ensure_future(self._listen())

    async def _listen(self) -> None:
        while line := await self._reader.readline():
            message = json.loads(line)
            if "method" not in message:
                self._answer(message["id"]).set_result(message)
            elif "id" in message:
                self.questions.put_nowait(message)
            else:
                self.notifications.append(message)

    def _answer(self, id: Any) -> asyncio.Future[dict[str, Any]]:
        return self._answers.setdefault(id, asyncio.get_running_loop().create_future())

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message as a line."""
        self.writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> asyncio.Future[dict[str, Any]]:
        """Send a request, and return what its answer will be."""
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params or {}})
        return self._answer(self.last_id)

    def send_line(self, id: Any, line: bytes) -> asyncio.Future[dict[str, Any]]:
        """Send a request as it stands, and return what its answer will be."""
        self._answers.pop(id, None)
        self.writer.write(line)
        return self._answer(id)

    async def result(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of a request."""
        async with asyncio.timeout(SECONDS):
            answer = await self.ask(method, params)
        return answer["result"]

    async def initialize(self, **capabilities: Any) -> dict[str, Any]:
        """Shake hands as a client of the older protocol."""
        result = await self.result("initialize", {**HANDSHAKE, "capabilities": capabilities})
        self.send({"method": "notifications/initialized"})
        return result

    def start_run(self, command: str, session: str = "") -> asyncio.Future[dict[str, Any]]:
        """Send a program, and return what its answer will be."""
        return self.ask("tools/call", {"name": "run", "arguments": {"command": command, "session": session}})

    async def run(self, command: str, session: str = "") -> str:
        """Return the text of a program's reply."""
        async with asyncio.timeout(SECONDS):
            answer = await self.start_run(command, session)
        return text_of(answer)

    def hold_reading(self) -> None:
        """Take nothing more from the socket, as a process does that is stopped."""
        self.writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue] - a socket's transport has it

    def resume_reading(self) -> None:
        """Take what has come meanwhile, and what comes."""
        self.writer.transport.resume_reading()  # pyright: ignore[reportAttributeAccessIssue] - as above

    async def ping(self) -> float:
        """Return how many seconds an answer takes that needs no work."""
        started = time.perf_counter()
        await self.result("ping")
        return time.perf_counter() - started

    async def question(self) -> dict[str, Any]:
        """Return the next question of the server."""
        return await asyncio.wait_for(self.questions.get(), SECONDS)

    async def aclose(self) -> None:
        """Hang up, and return when the server has let go of the connection."""
        self.writer.close()
        await asyncio.wait_for(asyncio.shield(self.serving), SECONDS)
        self._listening.cancel()


def text_of(answer: Mapping[str, Any]) -> str:
    """Return the text of an answer to ``tools/call``."""
    return "\n".join(block["text"] for block in answer["result"]["content"])


@dataclass
class SharedHost:
    """A host, a user's directory, and the clients that are connected."""

    host: Host
    directory: Path
    user: Path
    talks: list[SocketTalk] = field(default_factory=list[SocketTalk])

    async def connect(
        self, where: str = "one", environ: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
    ) -> SocketTalk:
        """Return a client that works in directory *where*, connected and greeted by nobody yet."""
        cwd = self.directory / where
        cwd.mkdir(exist_ok=True)
        client = ClientProcess(cwd, arguments, {**os.environ, **(environ or {})})
        connection = await Connection.open(self.host, client)
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=theirs)
        talk = SocketTalk(connection, *await asyncio.open_connection(sock=ours, limit=64 << 20))
        talk.serving = asyncio.ensure_future(_served(connection, reader, writer))
        self.talks.append(talk)
        return talk

    async def client(self, where: str = "one", environ: Mapping[str, str] | None = None, **can: Any) -> SocketTalk:
        """Return a client of the older protocol that works in directory *where*; *can* are its capabilities."""
        talk = await self.connect(where, environ, ["--shared", "--trust-project"])
        await talk.initialize(**can)
        return talk

    def write(self, file: str, text: str) -> Path:
        """Write a file below the directories that clients work in."""
        path = self.directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


async def _served(connection: Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await connection.serve(reader, writer)
    finally:
        writer.close()


@asynccontextmanager
async def shared_host(directory: Path, config: Mapping[str, Any] | None = None) -> AsyncGenerator[SharedHost]:
    """Yield a host whose user has *config*, and the portable engine; what clients left open is closed at the end."""
    user = Path.home() / ".onetool"
    user.mkdir(parents=True, exist_ok=True)
    (user / "onetool.yaml").write_text(json.dumps({"engines": {"use": "portable"}, **(config or {})}), encoding="utf-8")
    host = Host(Paths.of(directory, user))
    shared = SharedHost(host, directory, user)
    try:
        yield shared
    finally:
        for talk in shared.talks:
            await talk.aclose()
        await host.aclose()
        assert not host.servers.states()
