"""SharedServer: takes clients, serves each on a connection of its own, and ends when nobody needs it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import socket
import time
from contextlib import suppress
from typing import Any, cast

from ot.daemon.commands import TypedCommand, is_command
from ot.daemon.handshake import client_process, is_control, read_header, refuse, welcome
from ot.daemon.server_lock import ServerLock
from ot.errors import OneToolError
from ot.host import Host
from ot.processes.peer import ClientRefused, ServerRetires, require_own_peer
from ot.relay.header import Header
from ot.runtime.run_feed import RunFeed, RunWatcher
from ot.server.connection import ClientProcess, Connection, open_workspace
from ot.version import installed_version
from ot.workspace import Workspace

logger = logging.getLogger(__name__)

IDLE_SECONDS = 600.0
LOOK_SECONDS = 1.0
"""How often it looks whether it is still needed."""


class SharedServer:
    """The clients of one user, each with a workspace of its own on one host."""

    def __init__(
        self,
        lock: ServerLock,
        host: Host,
        *,
        idle_seconds: float = IDLE_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """Serve those who connect to the socket of *lock*; end *idle_seconds* after the last one has gone."""
        self._lock = lock
        self._host = host
        self._idle_seconds, self._look_seconds = idle_seconds, look_seconds
        self._connections: set[Connection] = set()
        self._commands: dict[TypedCommand, Workspace] = {}
        self._clients: set[asyncio.Task[Any]] = set()
        """Those who are greeted or served now."""
        self._watching: set[asyncio.Task[Any]] = set()
        self._used = time.monotonic()
        self._takes_clients = True
        self._ended = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Serve until it is stopped, or not needed any more."""
        server = await asyncio.start_unix_server(self._serve_client, sock=self._lock.listener)
        looking = asyncio.ensure_future(self._look())
        self._lock.ready()
        logger.info("sharing one server at %s", self._lock.place.socket)
        try:
            await self._ended.wait()
        finally:
            self.retire()
            looking.cancel()
            server.close()
            tasks = {*self._clients, *self._watching}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # ---------------------------------------------------------------- the end

    async def _look(self) -> None:
        """Retire once nobody has been here for long, or clients do not find this server any more."""
        while True:
            await asyncio.sleep(self._look_seconds)
            if self._clients:
                self._used = time.monotonic()
            elif not self._takes_clients:
                # Who had connected before it retired has been received since.
                self._ended.set()
            if time.monotonic() - self._used > self._idle_seconds or not self._lock.is_current():
                self.retire()

    def retire(self) -> None:
        """Take nobody new; who is here stays."""
        if self._takes_clients:
            logger.info("retiring, with %d clients", len(self._connections))
            self._takes_clients = False
            self._lock.end()

    def stop(self, *, now: bool = False) -> None:
        """Retire, give open runs the time that the settings give them unless it is to be *now*, and end."""
        self.retire()
        if now and self._stopping:
            self._stopping.cancel()
        if now or self._stopping is None:
            self._stopping = asyncio.ensure_future(self._drain(at_once=now))

    async def _drain(self, *, at_once: bool) -> None:
        clients = [connection.drain(at_once=at_once) for connection in self._connections]
        commands = [] if at_once else [command.drain(workspace) for command, workspace in self._commands.items()]
        await asyncio.gather(*clients, *commands, return_exceptions=True)
        self._ended.set()

    # ---------------------------------------------------------------- clients

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            await self._answer(reader, writer)
        except (ClientRefused, OneToolError) as error:
            logger.warning("a client is not served here: %s", error)
            refuse(writer, error)
        finally:
            self._clients.discard(task)
            self._used = time.monotonic()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with socket.fromfd(writer.get_extra_info("socket").fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as client:
            require_own_peer(client)
        header = await read_header(reader)
        if is_control(header):
            await self._control(header, reader, writer)
            return
        self._require_own_build(header)
        if is_command(header):
            await self._carry_out(TypedCommand(header, reader, writer), client_process(header), writer)
            return
        connection = await self._open_connection(header)
        welcome(writer)
        self._connections.add(connection)
        try:
            await connection.serve(reader, writer)
        finally:
            self._connections.discard(connection)

    async def _carry_out(self, command: TypedCommand, client: ClientProcess, writer: asyncio.StreamWriter) -> None:
        workspace = await open_workspace(self._host, client, secrets.token_hex(8), trust_project=command.trusts_project)
        try:
            self._commands[command] = workspace
            welcome(writer)
            await command.answer(workspace)
        finally:
            self._commands.pop(command, None)
            await workspace.aclose()

    def _require_own_build(self, header: Header) -> None:
        if header.key != self._lock.place.key:
            raise ClientRefused("the client is of another build or user")
        if header.environ.get(b"HOME", b"") != os.environb.get(b"HOME", b""):
            raise ClientRefused("the client has another HOME than the shared server")
        if self._takes_clients and not self._lock.is_current():
            self.retire()
            raise ServerRetires("another version has been installed")
        if self._stopping:
            raise ServerRetires("the shared server is ending")

    async def _open_connection(self, header: Header) -> Connection:
        connection = await Connection.open(self._host, client_process(header))
        workspace = connection.workspace
        if workspace.picture.loaded.config.daemon == "off":
            await workspace.aclose()
            self.retire()  # it holds for every client of this user
            raise ClientRefused("the setting daemon is off")
        await connection.prepare()
        return connection

    # ---------------------------------------------------------------- what is known of it

    def state(self) -> dict[str, Any]:
        """Return the data that ``onetool ps`` shows."""
        return {
            "build": installed_version(),
            "pid": os.getpid(),
            "since": self._lock.since,
            "socket": self._lock.place.socket,
            "connections": [
                *(connection.state() for connection in self._connections),
                *(command.state(workspace) for command, workspace in self._commands.items()),
            ],
        }

    async def _control(self, header: Header, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer with one line of JSON; more follow for who watches, and the end closes who asked for it."""
        asked = header.argv[1:]
        if asked not in ((), (b"watch",), (b"stop",), (b"stop", b"now")):
            raise ClientRefused("control takes nothing, watch, stop, or stop now")
        welcome(writer)
        writer.write(json.dumps(self.state()).encode() + b"\n")
        await writer.drain()
        if asked == (b"watch",):
            await self._be_watched(reader, writer)
        elif asked:
            self.stop(now=len(asked) > 1)
            await self._ended.wait()

    async def _be_watched(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        watching = asyncio.current_task()
        assert watching is not None
        # Watchers do not keep the server running: it ends when no other client needs it.
        self._clients.discard(watching)
        self._watching.add(watching)
        try:
            await serve_watcher(self._host.feed, reader, writer)
        finally:
            self._watching.discard(watching)


# ---------------------------------------------------------------- who watches

MALFORMED = "the request is malformed"


async def serve_watcher(feed: RunFeed, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Tell the other end what happens, until it goes away."""
    watcher = feed.watch()
    work = [asyncio.ensure_future(_send(watcher, writer)), asyncio.ensure_future(_listen(feed, watcher, reader))]
    try:
        await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    finally:
        feed.leave(watcher)
        for task in work:
            task.cancel()
        await asyncio.wait(work)


async def _send(watcher: RunWatcher, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while True:
            writer.write(await watcher.take())
            await writer.drain()


async def _listen(feed: RunFeed, watcher: RunWatcher, reader: asyncio.StreamReader) -> None:
    """Cancel what is asked for; a line that is longer than any of ours ends the connection."""
    with suppress(ConnectionError, ValueError):
        while line := await reader.readline():
            run, call, why = _read_request(line)
            why = why or feed.cancel(run, call)
            watcher.tell("refused" if why else "cancelled", run=run, call=call, why=why)


def _read_request(line: bytes) -> tuple[str, int | None, str]:
    """Return the run, and the call, that are to be cancelled, and what is wrong with the request."""
    try:
        said: Any = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    found = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    run, call = found.get("cancel"), found.get("call")
    if not isinstance(run, str) or not (call is None or type(call) is int):
        return "", None, MALFORMED
    return run, call, ""
