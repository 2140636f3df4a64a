"""A process whose children log in, or renew a login, and are killed at a given line of it, as by ``kill -9``."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys
from pathlib import Path
from types import CodeType
from typing import Any

from oauth.browserless_user import BrowserlessUser
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.browser_return import CallbackAnswer
from ot.proxied.auth.login import login
from ot.proxied.auth.token_auth import renew
from ot.proxied.auth.token_store import TokenStore

# What the HTTP client imports at its first request: each child would do so anew, under the eyes of its count.
for name in ("anyio._backends._asyncio", "anyio.streams.tls", "encodings.idna", "httpcore2", "truststore"):
    importlib.import_module(name)

WATCHED = ("/ot/proxied/auth/", "/ot/files/")


class KillingCount:
    """Counts the lines of the code that is watched, in every thread, and kills its process at one of them."""

    def __init__(self, at: int) -> None:
        """Kill at line number *at*; 0 only counts."""
        self.lines = 0
        self._at = at
        tool, events = sys.monitoring.DEBUGGER_ID, sys.monitoring.events
        sys.monitoring.use_tool_id(tool, "killing count")
        sys.monitoring.register_callback(tool, events.LINE, self._line)
        sys.monitoring.set_events(tool, events.LINE)

    def _line(self, code: CodeType, line: int) -> Any:
        if not any(part in code.co_filename for part in WATCHED):
            return sys.monitoring.DISABLE
        self.lines += 1
        if self.lines == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        return None


async def _login(account: ServerAccount) -> None:
    answers: list[str] = []

    async def show(address: str) -> None:
        answers.append(await BrowserlessUser().redirected_to(address))

    async def receive(state: str) -> CallbackAnswer:
        return CallbackAnswer.from_address(answers.pop())

    await login(account, show, receive)


def _work(account: ServerAccount, what: str, used: str) -> None:
    if what == "login":
        asyncio.run(_login(account))
    else:
        renew(account, TokenStore(account), used)


def _child(account: ServerAccount, order: dict[str, Any], out: int) -> None:
    count = KillingCount(order["at"])
    try:
        _work(account, order["what"], order["used"])
    finally:
        os.write(out, f"{count.lines}\n".encode())
        os._exit(0)


def main() -> None:
    """Carry out the orders of standard input, each in a child; say how many lines it came to, or that it was killed."""
    given: dict[str, Any] = json.loads(sys.argv[1])
    given["directory"] = Path(given["directory"])
    account = ServerAccount(**given)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _child(account, json.loads(line), 1)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            os.write(1, b"killed\n")


if __name__ == "__main__":
    main()
