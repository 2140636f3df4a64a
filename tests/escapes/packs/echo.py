"""Gives back what it gets, or what no tool should give."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any

from escapes.packs._watch import CANARY, WATCH
from escapes.packs.vault import VAULT, Vault

pack = "echo"
__all__ = ["boom", "cls", "fn", "gen", "id", "kw", "named", "obj", "slow"]


def id(x: Any) -> Any:
    """Return *x*."""
    with WATCH.call("echo.id", x):
        return x


def kw(**kw: Any) -> dict[str, Any]:
    """Return the keywords."""
    with WATCH.call("echo.kw", kw):
        return kw


def slow(s: float) -> str:
    """Return after *s* seconds, blocking a thread."""
    with WATCH.call("echo.slow", s):
        time.sleep(s)
        return "slow"


def boom() -> None:
    """Raise an error whose cause and note hold the secret."""
    with WATCH.call("echo.boom"):
        try:
            raise KeyError(CANARY)
        except KeyError as cause:
            error = ValueError("boom")
            error.add_note(CANARY)
            raise error from cause


def obj() -> Vault:
    """Return a live object."""
    with WATCH.call("echo.obj"):
        return VAULT


def gen() -> Generator[str]:
    """Return a live generator."""
    with WATCH.call("echo.gen"):
        return (secret for secret in [CANARY])


def cls() -> type[Vault]:
    """Return a class."""
    with WATCH.call("echo.cls"):
        return Vault


def fn() -> Callable[[], str]:
    """Return a function."""
    with WATCH.call("echo.fn"):
        return lambda: "HIDDEN-RAN"


def named() -> Callable[..., str]:
    """Return a function that has the name of a denied one."""

    def hidden(**_: Any) -> str:
        return "HIDDEN-RAN"

    with WATCH.call("echo.named"):
        hidden.__name__ = hidden.__qualname__ = "vault__wipe"
        return hidden
