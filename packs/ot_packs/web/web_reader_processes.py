"""Readers: processes that read hostile pages within bounds of time and memory."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from web_reading import HEAD, READY

PROGRAM = Path(__file__).with_name("web_reading.py")
MEGABYTES = 1536
COUNT = 2
START_SECONDS = 15.0
"""For its start, and for the libraries that a page needs."""
IDLE_SECONDS = 60.0
MAX_REPLY = 128 << 20


@asynccontextmanager
async def _within(seconds: float, words: str) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise TimeoutError(words.format(seconds)) from None


class Readers:
    """A few processes, started when they are needed; one that takes too long is killed, and the next starts anew."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._turns = asyncio.Semaphore(COUNT)
        self._idle: list[_Reader] = []

    async def read(self, format: str, body: bytes, **asked: Any) -> Any:
        """Return the reply to one question about *body*.

        Raises:
            ValueError: It cannot be read so; the text says why.
            TimeoutError: It took too long.
        """
        async with self._turns:
            reader = self._next() or await _Reader.start()
            try:
                async with _within(START_SECONDS, "this machine is too busy to read it: try again"):
                    await reader.ask({"format": format, **asked}, body)
                async with _within(self._seconds, "it was not read within {:g} s: fetch it with format='raw'"):
                    reply = await reader.reply()
            except BaseException as error:
                reader.end()
                if isinstance(error, (OSError, EOFError)) and not isinstance(error, TimeoutError):
                    raise ValueError("it made the parser crash: fetch it with format='raw'") from None
                raise
            reader.wait_idle(self._idle)
        if "error" in reply:
            raise ValueError(reply["error"])
        return reply

    def _next(self) -> _Reader | None:
        while self._idle:
            if (reader := self._idle.pop()).is_there:
                return reader
        return None


class _Reader:
    """One process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._end: asyncio.TimerHandle | None = None

    @classmethod
    async def start(cls) -> _Reader:
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-I", str(PROGRAM), str(MEGABYTES))
        return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))

    @property
    def is_there(self) -> bool:
        return self._process.returncode is None

    async def ask(self, asked: dict[str, Any], body: bytes) -> None:
        """Return once the process has the question and the libraries for it: that is not the page's time."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        if self._end is not None:
            self._end.cancel()
        question = json.dumps(asked).encode()
        stdin.writelines((HEAD.pack(len(question), len(body)), question, body))
        await stdin.drain()
        await stdout.readexactly(len(READY))

    async def reply(self) -> dict[str, Any]:
        stdout = self._process.stdout
        assert stdout is not None
        size, _ = HEAD.unpack(await stdout.readexactly(HEAD.size))
        if size > MAX_REPLY:
            raise EOFError
        try:
            return json.loads(await stdout.readexactly(size))
        except RecursionError:
            return {"error": "its JSON is nested too deeply"}

    def wait_idle(self, idle: list[_Reader]) -> None:
        """Be there for the next question, but not for long: a parser's libraries are large."""
        idle.append(self)

        def leave() -> None:
            with suppress(ValueError):
                idle.remove(self)
                self.end()

        self._end = asyncio.get_running_loop().call_later(IDLE_SECONDS, leave)

    def end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
