"""What an extension pack may use while it runs in its worker. Standard library only, Python 3.10 and newer."""

from __future__ import annotations

from typing import Any, BinaryIO

from ot_sdk import host, llm
from ot_sdk.errors import (
    ChatError,
    NoConfig,
    NotPlain,
    OutsideWorker,
    SdkError,
    SecretNotGranted,
    SettingsError,
    ToolCallFailed,
)
from ot_sdk.files import OpenDirectory
from ot_sdk.host import Level, Secret

__all__ = [
    "ChatError",
    "NoConfig",
    "NotPlain",
    "OpenDirectory",
    "OutsideWorker",
    "SdkError",
    "Secret",
    "SecretNotGranted",
    "SettingsError",
    "ToolCallFailed",
    "acall_tool",
    "call_tool",
    "config",
    "idempotency_key",
    "image",
    "llm",
    "log",
    "open_directory",
    "open_file",
    "progress",
    "secret",
]


def config() -> Any:
    """Return the pack's settings, an instance of its ``Config``.

    Raises:
        NoConfig: The pack has no ``Config``, or is still being imported.
        OutsideWorker: No worker and no ``ot_sdk.testing.use(config=...)`` is there.
    """
    return host.current().config()


def secret(name: str) -> Secret:
    """Return the secret called *name*; its ``reveal()`` gives the value.

    Raises:
        SecretNotGranted: The pack does not declare it, or the user has not set it.
        OutsideWorker: No worker and no ``ot_sdk.testing.use(...)`` is there.
    """
    return host.current().secret(name)


def log(message: str, level: Level = "info", **fields: Any) -> None:
    """Put *message* and *fields* into the server's log."""
    host.current().log(level, message, fields)


def progress(done: float, total: float | None = None, message: str = "") -> None:
    """Tell the client how far the call is; outside of a call it does nothing."""
    host.current().progress(done, total, message)


def idempotency_key() -> str:
    """Return a key for this call alone, for services that do the same thing only once per key.

    It is empty where a call changes nothing, and outside of a call.
    """
    return host.current().idempotency_key()


def call_tool(name: str, /, **arguments: Any) -> Any:
    """Return the value of the tool ``pack.tool``, called through the server; for plain ``def`` tools.

    Raises:
        ToolCallFailed: It ended without a value; ``kind`` and ``message`` say why.
        OutsideWorker: No worker and no ``ot_sdk.testing.use(tools=...)`` is there.
    """
    return host.current().call_tool(name, arguments)


async def acall_tool(name: str, /, **arguments: Any) -> Any:
    """Return the value of the tool ``pack.tool``, called through the server; for ``async def`` tools.

    Raises:
        ToolCallFailed: It ended without a value; ``kind`` and ``message`` say why.
        OutsideWorker: No worker and no ``ot_sdk.testing.use(tools=...)`` is there.
    """
    return await host.current().acall_tool(name, arguments)


def image(data: bytes, mime_type: str = "image/png") -> dict[str, Any]:
    """Return a placeholder for an image: the client sees the image if a program returns or ``ot.show``s it.

    Raises:
        ValueError: The data is too large, or no image of that kind.
        OutsideWorker: No worker and no ``ot_sdk.testing.use(...)`` is there.
    """
    return host.current().image(data, mime_type)


def open_file(path: str) -> BinaryIO:
    """Return the file that a program named, open for reading, if the server's rule for paths allows it.

    Give a library this object, or ``f"/proc/self/fd/{file.fileno()}"``, and never the path: another file may have its
    place meanwhile.

    Raises:
        PermissionError: It lies outside of the allowed directories, or none may read it.
        OSError: There is no such file.
        OutsideWorker: No worker and no ``ot_sdk.testing.use(files=...)`` is there.
    """
    return host.current().open_file(path)


def open_directory(path: str) -> OpenDirectory:
    """Return the directory that a program named, open until the end of a ``with`` block, as ``open_file``.

    Its ``path`` is where it is. Links below it are not checked: do not follow them. Read only what it ``shows``.
    """
    return host.current().open_directory(path)
