"""Readers: processes that read hostile pages within bounds of time and memory."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from web_reading import HEAD

PROGRAM = Path(__file__).with_name("web_reading.py")
MEGABYTES = 1536
COUNT = 2
START_SECONDS = 15.0
IDLE_SECONDS = 60.0
MAX_REPLY = 128 << 20


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
                async with asyncio.timeout(self._seconds):
                    reply = await reader.ask({"format": format, **asked}, body)
            except BaseException as error:
                reader.end()
                if isinstance(error, TimeoutError):
                    raise TimeoutError(
                        f"it was not read within {self._seconds:g} s: fetch it with format='raw'"
                    ) from None
                if isinstance(error, (OSError, EOFError)):
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
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        reader = cls(process)
        try:
            async with asyncio.timeout(START_SECONDS):  # its start is not the page's time
                await reader.ask({"format": "raw", "type": "text/plain", "charset": ""}, b"")
        except BaseException:
            reader.end()
            raise
        return reader

    @property
    def is_there(self) -> bool:
        return self._process.returncode is None

    async def ask(self, asked: dict[str, Any], body: bytes) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        if self._end is not None:
            self._end.cancel()
        question = json.dumps(asked).encode()
        stdin.writelines((HEAD.pack(len(question), len(body)), question, body))
        await stdin.drain()
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
