"""Renews and makes logins in children that kill themselves at a step: ``killed_steps.py URL (STEP DIRECTORY)...``.

The steps are forked from one process, which imports everything once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from ot.servers.auth import login as login_module
from ot.servers.auth import refresh
from ot.servers.auth.account import ServerAccount
from ot.servers.auth.login import login
from ot.servers.auth.renewal import renewed
from ot.servers.auth.system_keyring import SystemKeyring
from ot.servers.auth.token_store import TokenStore
from servers.auth.login_desk import PRINCIPAL, Browser

NO_KEYRING = SystemKeyring(lambda: None)


def die(*_: Any, **__: Any) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def die_at(call: int, of: Any, name: str, *, after: bool = False) -> None:
    """Let this process end in, or *after*, the given *call* of a function."""
    kept: Callable[..., Any] = getattr(of, name)
    count = [0]

    def counted(*arguments: Any, **named: Any) -> Any:
        count[0] += 1
        if count[0] == call and not after:
            die()
        value = kept(*arguments, **named)
        return die() if count[0] == call else value

    setattr(of, name, counted)


def renew(account: ServerAccount) -> None:
    store = TokenStore(account, NO_KEYRING)
    record = store.read()
    assert record
    renewed(account, store, record.access_token)


def log_in(account: ServerAccount) -> None:
    browser = Browser()
    asyncio.run(login(account, browser.show, browser.receive, keyring=NO_KEYRING))


REFRESH: dict[str, Callable[[], None]] = {
    "refresh: before it asks": lambda: die_at(1, refresh, "post_as_client"),
    "refresh: answer received": lambda: die_at(1, refresh, "with_tokens"),
    "refresh: half written": lambda: die_at(2, os, "replace"),
    "refresh: written": lambda: die_at(2, TokenStore, "write", after=True),
}
LOGIN: dict[str, Callable[[], None]] = {
    "login: address shown": lambda: die_at(1, Browser, "show", after=True),
    "login: code received": lambda: die_at(1, Browser, "receive"),
    "login: tokens received": lambda: die_at(1, login_module, "_keep"),
    "login: half written": lambda: die_at(1, os, "replace"),
}


def main(url: str, *pairs: str) -> None:
    for step, directory in zip(pairs[::2], pairs[1::2], strict=True):
        account = ServerAccount("guarded", url, PRINCIPAL, Path(directory), port=41237)
        child = os.fork()
        if not child:
            {**REFRESH, **LOGIN}[step]()
            (renew if step in REFRESH else log_in)(account)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{step} {os.waitstatus_to_exitcode(status)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
