"""WaitingQuestions: questions of this process's runs that a person answers in another terminal, by ``onetool answer``.

A socket in the user's private directory is there while a question waits. Whoever connects to it as the same user sees
the questions; only a person at a terminal can answer one, and the kernel says who that is.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import socket
import time
from asyncio.subprocess import DEVNULL
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shutil import which
from typing import Any, cast

import anyio.to_thread

from ot.errors import CannotAsk
from ot.execution.caller import Answer, Question
from ot.processes.peer import (
    ClientRefused,
    ProcessFacts,
    can_tell_persons,
    own_peer,
    remove_dead_sockets,
    require_person,
)
from ot.relay.place import QUESTIONS_ENDING, Unshared, private_directory

logger = logging.getLogger(__name__)

LETTERS = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
"""None of them is taken for another when a person copies a code."""
CODE_LETTERS = 6
MAX_LINE = 1 << 20
MOST = 64
"""How many questions wait at the same time."""
NOTIFIER, NOTIFY_SECONDS = "notify-send", 10.0
GONE = "no question waits under this code: it was answered already, or its run has ended"

type RequirePerson = Callable[[int, int], None]
"""Returns when a person uses that process, which began at that moment; raises ClientRefused."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Whose run asks: the client's name, where it works, and the id of a run in the background."""

    client: str = ""
    directory: str = ""
    run: str = ""


@dataclass(slots=True)
class _Waiting:
    question: Question
    asker: Asker
    until: float
    answer: asyncio.Future[Answer]
    since: float = field(default_factory=time.time)

    def as_wire(self, code: str) -> dict[str, Any]:
        """Return it as ``onetool answer`` shows it; the arguments are in the message, redacted and cut."""
        question = {name: value for name, value in asdict(self.question).items() if name != "arguments"}
        left = max(self.until - time.monotonic(), 0.0)
        return {"code": code, "since": self.since, "left": left, "question": question, **asdict(self.asker)}


class WaitingQuestions:
    """The questions of one process that wait, each under a code that is good for one answer."""

    def __init__(self, require: RequirePerson = require_person) -> None:
        """Take answers from processes that *require* lets through."""
        self._require = require
        self._waiting: dict[str, _Waiting] = {}
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._opening = asyncio.Lock()

    async def ask(self, question: Question, asker: Asker, seconds: float, show_code: Callable[[str], None]) -> Answer:
        """Return the answer that a person gives within *seconds*; *show_code* gets the code of the question.

        Raises:
            CannotAsk: Nobody did, or nobody can from here.
        """
        if len(self._waiting) >= MOST:
            raise CannotAsk(f"{MOST} questions wait for an answer in a terminal already")
        code = self._new_code()
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[code] = _Waiting(question, asker, time.monotonic() + seconds, answer)
        try:
            await self._listen()
            show_code(code)
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            raise CannotAsk(f"nobody answered within {seconds:g} s by onetool answer {code}") from None
        finally:
            self._waiting.pop(code, None)
            if not self._waiting:
                self._stop_listening()

    def _new_code(self) -> str:
        # Drawn from 30**6: that one comes twice while a person still has the first on the screen is as good as never.
        while (code := "".join(secrets.choice(LETTERS) for _ in range(CODE_LETTERS))) in self._waiting:
            pass
        return code

    # ---------------------------------------------------------------- the socket

    async def _listen(self) -> None:
        async with self._opening:
            if self._server:
                return
            if not can_tell_persons():
                raise CannotAsk("this system cannot say who is at a terminal")
            try:
                self._path, listener = _bind_socket()
            except (OSError, Unshared) as error:
                raise CannotAsk(f"no question can wait for a terminal here: {error}") from None
            self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=MAX_LINE)

    def _stop_listening(self) -> None:
        if self._server:
            self._server.close()
            self._server = None
        if self._path:
            self._path.unlink(missing_ok=True)
            self._path = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with socket.fromfd(writer.get_extra_info("socket").fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as peer:
                pid = own_peer(peer)
            began = ProcessFacts.read(pid).began
            _send(writer, {"questions": [waiting.as_wire(code) for code, waiting in self._waiting.items()]})
            while line := await reader.readline():
                _send(writer, await self._take_answer(line, pid, began))
        except asyncio.CancelledError:
            pass  # the process ends; raised, it would be logged as an error
        except (ClientRefused, OSError, ValueError) as error:
            with suppress(OSError):
                _send(writer, {"refused": str(error)})
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _take_answer(self, line: bytes, pid: int, began: int) -> dict[str, Any]:
        """Return whether the answer of *line* was taken, and if not, why."""
        code, answer = _read_answer(line)
        if answer is None:
            return {"refused": "the answer is malformed"}
        try:
            await anyio.to_thread.run_sync(self._require, pid, began)
        except ClientRefused as error:
            logger.warning("an answer of process %d was refused: %s", pid, error)
            return {"refused": str(error)}
        waiting = self._waiting.pop(code, None)
        if waiting is None or waiting.answer.done():
            return {"refused": GONE}
        waiting.answer.set_result(answer)
        return {"taken": True}


_notifying: set[asyncio.Task[None]] = set()
"""The loop alone would forget them."""


def notify_desktop(tool: str, code: str, environ: Mapping[str, str]) -> None:
    """Show on the desktop of *environ* that *tool* asks, and how it is answered; nothing waits for it."""
    task = asyncio.ensure_future(_notify(tool, code, environ))
    _notifying.add(task)
    task.add_done_callback(_notifying.discard)


async def _notify(tool: str, code: str, environ: Mapping[str, str]) -> None:
    words = ["--", f"OneTool: {tool or 'a run'} asks first", f"In a terminal: onetool answer {code}"]
    try:
        notifier = which(NOTIFIER, path=environ.get("PATH")) or NOTIFIER
        process = await asyncio.create_subprocess_exec(
            notifier, *words, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, env=dict(environ)
        )
        try:
            async with asyncio.timeout(NOTIFY_SECONDS):
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
    except (OSError, TimeoutError) as error:
        logger.warning("no desktop notification of a question: %s", error or "notify-send does not end")


def _bind_socket() -> tuple[Path, socket.socket]:
    """Return the socket of this process, and where it is."""
    directory = private_directory()
    remove_dead_sockets(directory, QUESTIONS_ENDING)
    # Process ids are not unique here: clients' sandboxes have their own. It has its name only once it listens.
    path = Path(directory, f"{secrets.token_hex(6)}{QUESTIONS_ENDING}")
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path.with_suffix(".new")))
        listener.listen()
        path.with_suffix(".new").rename(path)
    except OSError:
        listener.close()
        raise
    return path, listener


def _send(writer: asyncio.StreamWriter, message: Mapping[str, Any]) -> None:
    writer.write(json.dumps(message).encode() + b"\n")


def _read_answer(line: bytes) -> tuple[str, Answer | None]:
    """Return the code and the answer of *line*; no answer where it is malformed."""
    try:
        said: Any = json.loads(line)
    except (ValueError, RecursionError):
        return "", None
    if not isinstance(said, dict):
        return "", None
    found = cast("dict[str, Any]", said)
    code, action, content = found.get("code"), found.get("action"), found.get("content", {})
    if not isinstance(code, str) or action not in ("accept", "decline") or not isinstance(content, dict):
        return "", None
    return code, Answer(action, cast("dict[str, Any]", content))
