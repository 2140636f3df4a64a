"""Host: what an author's calls reach, in a worker the worker, in a test whatever the test put there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, Protocol

from ot_sdk.errors import OutsideWorker
from ot_sdk.secret import Secret


class Host(Protocol):
    """Answers what a pack asks for."""

    def config(self) -> Any:
        """Return the pack's settings."""
        ...

    def secret(self, name: str) -> Secret:
        """Return a secret that the pack was given."""
        ...

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        """Note what happened."""
        ...

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Say how far the call is."""
        ...

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the value of another tool."""
        ...

    async def acall_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the value of another tool, without blocking the event loop."""
        ...


class NoHost:
    """Answers where there is no worker: notes go nowhere, everything else is refused."""

    def config(self) -> NoReturn:
        raise OutsideWorker("config()")

    def secret(self, name: str) -> NoReturn:
        raise OutsideWorker("secret()")

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        pass

    def progress(self, done: float, total: float | None, message: str) -> None:
        pass

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> NoReturn:
        raise OutsideWorker("call_tool()")

    async def acall_tool(self, name: str, arguments: Mapping[str, Any]) -> NoReturn:
        raise OutsideWorker("acall_tool()")


# A process has one host, and the threads that a tool starts must reach it too: a context variable would not do.
_hosts: list[Host] = [NoHost()]


def current() -> Host:
    """Return the host that answers now."""
    return _hosts[-1]


def install(host: Host) -> None:
    """Let *host* answer from now on."""
    _hosts.append(host)


def remove(host: Host) -> None:
    """Let the host before *host* answer again."""
    _hosts.remove(host)
