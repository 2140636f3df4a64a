"""Answers a command that was typed at a terminal as the command line itself would, from a workspace of its own."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import asdict
from typing import Any, cast

from ot.cli.exit_codes import exit_code
from ot.cli.terminal.command_answer import CommandAnswer, CommandFailed, reply_as_data
from ot.config.principal import os_user
from ot.daemon.handshake import MAX_BYTES
from ot.errors import CannotAsk, OneToolError
from ot.execution.caller import Answer, Caller, Question
from ot.processes.peer import ClientRefused
from ot.relay.header import COMMAND, Header
from ot.stats.rows import CLI
from ot.workspace import Workspace

LENGTH_BYTES = 4


def is_command(header: Header) -> bool:
    """Return whether the connection brings a command."""
    return header.argv[:1] == (COMMAND,)


class TypedCommand:
    """One command on a connection of its own: what it asks goes back to the terminal that it was typed at."""

    def __init__(self, header: Header, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read what is asked from *header*, or raise ClientRefused if it is malformed."""
        try:
            asked: Any = json.loads(header.argv[1])
        except (ValueError, LookupError, RecursionError):
            asked = {}
        if not _is_well_formed(asked):
            raise ClientRefused("the command is malformed")
        self._name: str = asked["command"]
        self._words: list[str] = asked["words"]
        self._flags: list[str] = asked["flags"]
        self._somebody_is_there: bool = asked["somebody_is_there"]
        self._reader, self._writer = reader, writer
        self._since = time.time()
        self._over = asyncio.Event()
        self._asking = asyncio.Lock()
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def state(self, workspace: Workspace) -> dict[str, Any]:
        """Return its state in the form of a client's connection."""
        cwd, runs = str(workspace.paths.cwd), workspace.open_runs
        return {"cwd": cwd, "client": f"onetool {self._name}", "since": self._since, "runs": runs}

    @property
    def trusts_project(self) -> bool:
        """Whether the project is used without having been trusted."""
        return "--trust-project" in self._flags

    async def answer(self, workspace: Workspace) -> None:
        """Answer from *workspace*; who goes away before is not worked for any more."""
        working = asyncio.ensure_future(self._answer(workspace))
        listening = asyncio.ensure_future(self._listen())
        try:
            await asyncio.wait((working, listening), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (working, listening):
                task.cancel()
            await asyncio.wait((working, listening))
        if not working.cancelled():
            await self._send(working.result())
        self._over.set()

    async def drain(self, workspace: Workspace) -> None:
        """Wait until it has ended, or until open runs have used up their time to drain."""
        with suppress(TimeoutError):
            async with asyncio.timeout(workspace.picture.loaded.config.limits.drain_seconds):
                await self._over.wait()

    async def _answer(self, workspace: Workspace) -> dict[str, Any]:
        try:
            if self._name == "run" and len(self._words) == 1:
                return {"reply": reply_as_data(await self._run(workspace))}
            return {"answer": asdict(await self._look_up(workspace))}
        except CommandFailed as failed:
            return {"answer": {"problem": str(failed), "code": failed.code}}
        except OneToolError as error:
            return {"answer": {"problem": str(error), "code": exit_code(error)}}

    async def _look_up(self, workspace: Workspace) -> CommandAnswer:
        from ot.cli.show import describe_name  # noqa: PLC0415 - the first client need not wait for the command line's library
        from ot.cli.tools import find_tools, list_tools  # noqa: PLC0415 - as above

        match self._name, self._words:
            case "list", [] | [_] as words:
                return list_tools(workspace, *words, tokens="--tokens" in self._flags)
            case "search", words:
                return find_tools(workspace, words)
            case "show", [name]:
                return await describe_name(workspace, name)
            case _:
                given = f"{self._name!r:.100} with {len(self._words)} words"
                raise CommandFailed(f"the shared server knows no command {given}", 1)

    async def _run(self, workspace: Workspace) -> Any:
        def ask(question: Question) -> Any:
            return self._ask(question, workspace.ask_seconds)

        caller = Caller(os_user(), client=CLI, ask=ask, opens=self._somebody_is_there)
        return await workspace.run(self._words[0], caller)

    async def _ask(self, question: Question, seconds: float) -> Answer:
        async with self._asking:
            await self._send({"question": asdict(question), "seconds": seconds})
            said = await self._answers.get()
        if "cannot" in said:
            raise CannotAsk(said["cannot"])
        return Answer(**said)

    async def _listen(self) -> None:
        """Take answers until the other end is gone, or sends what is not an answer."""
        with suppress(asyncio.IncompleteReadError, ConnectionError, ValueError, RecursionError):
            while True:
                length = int.from_bytes(await self._reader.readexactly(LENGTH_BYTES), "big")
                if length > MAX_BYTES or not _is_answer(said := json.loads(await self._reader.readexactly(length))):
                    return
                self._answers.put_nowait(said)

    async def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        self._writer.write(len(body).to_bytes(LENGTH_BYTES, "big") + body)
        await self._writer.drain()


def _is_well_formed(asked: Any) -> bool:
    if not isinstance(asked, dict):
        return False
    found = cast("dict[str, Any]", asked)
    texts = [found.get("command")]
    for name in ("words", "flags"):
        if not isinstance(found.get(name), list):
            return False
        texts += found[name]
    return all(isinstance(text, str) for text in texts) and isinstance(found.get("somebody_is_there"), bool)


def _is_answer(said: Any) -> bool:
    if not isinstance(said, dict):
        return False
    found = cast("dict[str, Any]", said)
    if "cannot" in found:
        return isinstance(found["cannot"], str)
    is_known = found.get("action") in ("accept", "decline", "cancel")
    return is_known and set(found) <= {"action", "content"} and isinstance(found.get("content", {}), dict)
