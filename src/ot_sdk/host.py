"""PackHost: what an author's calls reach, in a worker the worker, in a test whatever the test put there.

Beside it the secrets that it hands out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, BinaryIO, Literal, NoReturn, get_args

from ot_sdk.errors import OutsideWorker
from ot_sdk.files import OpenDirectory

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

    def idempotency_key(self) -> str:
        """Return the key of the running call."""
        return current_key.get()

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the value of another tool."""
        raise OutsideWorker("call_tool()")

    async def acall_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the value of another tool, without blocking the event loop."""
        raise OutsideWorker("acall_tool()")

    def ask_model(self, text: str, schema: Mapping[str, Any] | None) -> Any:
        """Ask the model and return its answer: a text, or a dict that fits *schema*."""
        raise OutsideWorker("llm")

    async def aask_model(self, text: str, schema: Mapping[str, Any] | None) -> Any:
        """Return as ``ask_model``, without blocking the event loop."""
        raise OutsideWorker("llm")

    def image(self, data: bytes, mime_type: str) -> dict[str, Any]:
        """Return a placeholder for an image in a program's values."""
        raise OutsideWorker("image()")

    def open_file(self, path: str) -> BinaryIO:
        """Return a file that a program named, open for reading."""
        raise OutsideWorker("open_file()")

    def open_directory(self, path: str) -> OpenDirectory:
        """Return a directory that a program named, open."""
        raise OutsideWorker("open_directory()")

    def require_writable(self, paths: Sequence[str]) -> None:
        """Check that other tools may write these files for the pack, of which the user is asked at most once."""
        raise OutsideWorker("require_writable()")


current_key: ContextVar[str] = ContextVar("ot_sdk_key", default="")
"""The key of the call that is running, of packs that run in the server's own process."""

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


# ---------------------------------------------------------------- secrets


class Secret:
    """A value that only ``reveal()`` shows: not text, not formatting, not JSON, not a pickle."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: Any) -> Secret:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")
