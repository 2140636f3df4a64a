"""PackHost: what an author's calls reach, in a worker the worker, in a test whatever the test put there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from ot_sdk.errors import OutsideWorker
from ot_sdk.secret import Secret

Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[str, ...] = get_args(Level)


class PackHost:
    """Answers what a pack asks for; this one where there is no worker: notes go nowhere, the rest is refused."""

    def config(self) -> Any:
        """Return the pack's settings."""
        raise OutsideWorker("config()")

    def secret(self, name: str) -> Secret:
        """Return a secret that the pack was given."""
        raise OutsideWorker("secret()")

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        """Note what happened."""

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Say how far the call is."""

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the value of another tool."""
        raise OutsideWorker("call_tool()")

    async def acall_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the value of another tool, without blocking the event loop."""
        raise OutsideWorker("acall_tool()")


# A process has one host, and the threads that a tool starts must reach it too: a context variable would not do.
_hosts = [PackHost()]


def current() -> PackHost:
    """Return the host that answers now."""
    return _hosts[-1]


def install(host: PackHost) -> None:
    """Let *host* answer from now on."""
    _hosts.append(host)


def remove(host: PackHost) -> None:
    """Let the host before *host* answer again."""
    _hosts.remove(host)


def check_level(level: str) -> None:
    """Refuse an unknown level.

    Raises:
        ValueError: It is not one of ``LEVELS``.
    """
    if level not in LEVELS:
        raise ValueError(f"there is no level {level!r}; there are {', '.join(LEVELS)}")
