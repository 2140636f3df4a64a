"""A person who takes all that the quotas allow, in a process of its own: ``python greedy_person.py PORT TOKEN``.

It goes on until its standard input ends, and then tells in JSON how its requests were answered.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

SENDERS = 12
"""More than may be under way, so that there is always one that waits."""
HALF_OPEN = 1200
"""More than the server takes."""
OPEN_AT_ONCE = 50
PAUSE_SECONDS = 0.05
HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"
GONE = (OSError, EOFError, asyncio.IncompleteReadError)


class GreedyPerson:
    """Sends programs in turn, holds connections half open, and counts answers by status."""

    def __init__(self, port: int, token: str) -> None:
        """Be who *token* names, at the server on *port*."""
        from team.greedy_programs import IN_TURN

        self._port = port
        self._token = token
        self._programs = IN_TURN
        self.statuses = Counter[str]()

    async def be_greedy(self) -> None:
        """Go on until cancelled."""
        async with asyncio.TaskGroup() as all_at_once:
            for number in range(SENDERS):
                all_at_once.create_task(self._send(number))
            for _ in range(OPEN_AT_ONCE):
                all_at_once.create_task(self._hold(HALF_OPEN // OPEN_AT_ONCE))

    async def _send(self, number: int) -> None:
        while True:
            self.statuses[await self.post(self._programs[number % len(self._programs)])] += 1
            number += 1

    async def post(self, command: str) -> str:
        """Run *command*, and return the status of the answer."""
        from http_server import ACCEPT, MODERN, call

        body = json.dumps(call(command)).encode()
        named = {"authorization": f"Bearer {self._token}", "accept": ACCEPT, "content-type": "application/json"}
        named |= {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "run"}
        named |= {"content-length": str(len(body)), "connection": "close"}
        head = "".join(f"{name}: {value}\r\n" for name, value in named.items()).encode()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            try:
                writer.write(HEAD + head + b"\r\n" + body)
                answer = await reader.read()
            finally:
                writer.close()
        except GONE as error:
            await asyncio.sleep(PAUSE_SECONDS)
            return type(error).__name__
        status = answer[9:12].decode() or "nothing"
        if status != "200":
            await asyncio.sleep(PAUSE_SECONDS)
        return status

    async def _hold(self, number: int) -> None:
        """Keep *number* connections whose heads are not whole, and open another one for each that was closed."""
        held: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                writer.write(HEAD)
                held.append((reader, writer))
            opened = len(held)
            held = [one for one in held if not (one[0].at_eof() or one[1].is_closing())]
            if len(held) < opened or opened >= number:
                await asyncio.sleep(PAUSE_SECONDS)


async def _main(port: int, token: str) -> None:
    from team.greedy_programs import CANCEL_BACKGROUND, MAKE_FILES, SLEEPS_IN_BACKGROUND

    person = GreedyPerson(port, token)
    begun = [await person.post(command) for command in (MAKE_FILES, SLEEPS_IN_BACKGROUND)]
    print(json.dumps(begun), flush=True)  # noqa: T201 - that is how it tells
    greed = asyncio.ensure_future(person.be_greedy())
    await asyncio.to_thread(sys.stdin.read)
    greed.cancel()
    await asyncio.gather(greed, return_exceptions=True)
    ended = await person.post(CANCEL_BACKGROUND)
    print(json.dumps({"ended": ended, **person.statuses}))  # noqa: T201 - as above


@contextmanager
def greedy_person(port: int, token: str) -> Generator[dict[str, Any]]:
    """Have one be greedy in the block, and yield what will hold how its requests were answered."""
    tests = Path(__file__).parents[1]
    path = ":".join(entry for entry in (str(tests), *sys.path) if entry)
    argv = [sys.executable, __file__, str(port), token]
    answered: dict[str, Any] = {}
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": path, "HOME": "/nowhere"}
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            assert process.stdout.readline() == '["200", "200"]\n'
            yield answered
            process.stdin.close()
            answered |= json.loads(process.stdout.readline())
        except BaseException:
            process.kill()
            raise


if __name__ == "__main__":
    os.nice(19)  # what it computes itself, it does on a machine of its own
    asyncio.run(_main(int(sys.argv[1]), sys.argv[2]))
