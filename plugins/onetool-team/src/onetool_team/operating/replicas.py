"""Replicas: the processes that serve a team, asked by its operator: by mail in Redis, or at a socket of one machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from onetool_team.state.presence import REPLICAS, Presence
from onetool_team.state.replica_mail import OPERATOR, AnswerOperator, ReplicaGone, ReplicaMail, TellNews
from onetool_team.state.shared_state import SharedState, StateUnavailable
from onetool_team.state.state_keys import StateKeys

SOCKET = "operator.sock"
ANSWER_SECONDS = 15.0
MOST_BYTES = 8 << 20


class Replicas(Protocol):
    """Asks the replicas that are there; a replica that does not answer is left out."""

    async def ask(
        self, what: str, body: Mapping[str, Any] | None = None, most: int | None = None
    ) -> dict[str, Mapping[str, Any]]:
        """Return what each replica answers, by its name; no more than *most* are asked."""
        ...


class MailedReplicas:
    """The replicas that share a Redis, from wherever the operator has the configuration."""

    def __init__(self, state: SharedState, keys: StateKeys) -> None:
        """Ask through *state*; nobody without *keys* is believed."""
        self._state = state
        self._mail = ReplicaMail(state, keys, Presence(state), _refuse)

    async def ask(
        self, what: str, body: Mapping[str, Any] | None = None, most: int | None = None
    ) -> dict[str, Mapping[str, Any]]:
        """Return what each replica answers."""
        names = (await self._state.members(REPLICAS))[:most]
        asked = [self._ask(name, f"{OPERATOR}{what}", body or {}) for name in names]
        found = zip(names, await asyncio.gather(*asked), strict=True)
        return {name: answer for name, answer in found if answer is not None}

    async def _ask(self, name: str, what: str, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._mail.ask(name, what, body)
        except (ReplicaGone, TimeoutError):
            return None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[MailedReplicas]:
        """Read answers in the block."""
        await self._mail.start()
        try:
            yield self
        finally:
            await self._mail.aclose()


async def _refuse(what: str, body: Mapping[str, Any], tell: TellNews) -> Mapping[str, Any]:
    return {"failed": True}


class ThisMachine:
    """The one server of this machine that shares nothing, at a socket that only its user can open."""

    def __init__(self, global_dir: Path) -> None:
        """Look for its socket in *global_dir*."""
        self._path = global_dir / SOCKET

    async def ask(
        self, what: str, body: Mapping[str, Any] | None = None, most: int | None = None
    ) -> dict[str, Mapping[str, Any]]:
        """Return what it answers, if it runs."""
        try:
            reader, writer = await asyncio.open_unix_connection(str(self._path), limit=MOST_BYTES)
        except OSError:
            return {}
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                writer.write(json.dumps([what, body or {}]).encode() + b"\n")
                answer = await reader.readline()
        except (OSError, TimeoutError) as error:
            raise StateUnavailable(f"the server at {self._path} does not answer: {error}") from None
        finally:
            writer.close()
        return {"here": json.loads(answer)} if answer else {}


@asynccontextmanager
async def answering_here(global_dir: Path, answer: AnswerOperator) -> AsyncGenerator[None]:
    """Have *answer* answer at the socket in *global_dir* in the block; the directory is the user's alone."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError):
            what, body = json.loads(await reader.readline())
            writer.write(json.dumps(await answer(what, body)).encode() + b"\n")
            await writer.drain()
        writer.close()

    path = global_dir / SOCKET
    path.unlink(missing_ok=True)
    before = os.umask(0o177)
    try:
        server = await asyncio.start_unix_server(serve, str(path), limit=MOST_BYTES)
    finally:
        os.umask(before)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)
