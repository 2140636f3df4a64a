"""For tests of a pack: stands in for the worker, so that a tool can be called as the function that it is."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple, cast

from ot_sdk import host
from ot_sdk.errors import ChatError, NoConfig, SecretNotGranted, ToolCallFailed
from ot_sdk.files import OpenDirectory, open_found_directory, open_found_file
from ot_sdk.host import Secret
from ot_sdk.images import image_block, image_value


class Logged(NamedTuple):
    """What a pack logged."""

    level: str
    message: str
    fields: Mapping[str, Any]


class Progressed(NamedTuple):
    """How far a tool said that it was."""

    done: float
    total: float | None
    message: str


class StandIn(host.PackHost):
    """Answers a pack from what a test gave, and collects what it says."""

    def __init__(
        self, config: Any, secrets: Mapping[str, str], tools: Mapping[str, Any], llm: Any, key: str, files: str | None
    ) -> None:
        self.logs: list[Logged] = []
        self.progressed: list[Progressed] = []
        self.called: list[tuple[str, Mapping[str, Any]]] = []
        self.asked: list[str] = []
        self.images: list[bytes] = []
        self._config = config
        self._secrets = secrets
        self._tools = tools
        self._llm = llm
        self._key = key
        self._files = files

    def config(self) -> Any:
        """Return the test's settings."""
        if self._config is None:
            raise NoConfig("the test gave no settings: ot_sdk.testing.use(config=Config(...))")
        return self._config

    def secret(self, name: str) -> Secret:
        """Return the test's secret *name*."""
        if name not in self._secrets:
            raise SecretNotGranted(name, "under test")
        return Secret(self._secrets[name])

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        """Collect a line."""
        host.check_level(level)
        self.logs.append(Logged(level, message, fields))

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Collect a step."""
        self.progressed.append(Progressed(done, total, message))

    def idempotency_key(self) -> str:
        """Return the test's key for the call."""
        return self._key

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the answer of the test's function or value."""
        value = self._answer(name, arguments)
        if isinstance(value, Coroutine):
            value.close()
            raise TypeError(f"the test's {name} is async, but call_tool() is not: give a plain function")
        return value

    async def acall_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the answer of the test's function, coroutine function or value."""
        value = self._answer(name, arguments)
        if not isinstance(value, Coroutine):
            return value
        coroutine = cast("Coroutine[Any, Any, Any]", value)
        try:
            return await coroutine
        except Exception as error:  # noqa: BLE001 - as in a worker: the object itself does not cross
            raise ToolCallFailed(type(error).__name__, str(error)) from None

    def ask_model(self, text: str, schema: Mapping[str, Any] | None) -> Any:
        """Return the answer of the test's function or value."""
        self.asked.append(text)
        if self._llm is None:
            raise ChatError("ChatError", "the test gave no model: ot_sdk.testing.use(llm=...)")
        return self._llm(text) if callable(self._llm) else self._llm

    async def aask_model(self, text: str, schema: Mapping[str, Any] | None) -> Any:
        """Return as above."""
        return self.ask_model(text, schema)

    def image(self, data: bytes, mime_type: str) -> dict[str, Any]:
        """Collect an image, and return what stands for it."""
        image_block(data, mime_type)
        self.images.append(data)
        return image_value(data, mime_type)

    def open_file(self, path: str) -> BinaryIO:
        """Return the file at *path* below the directory that the test gave."""
        at, found = self._find(path)
        return open_found_file(path, at, (found.st_dev, found.st_ino))

    def open_directory(self, path: str) -> OpenDirectory:
        """Return the directory at *path* below the one that the test gave."""
        at, found = self._find(path)
        return open_found_directory(path, at, (found.st_dev, found.st_ino), ())

    def require_writable(self, paths: Sequence[str]) -> None:
        """Return at once: the test's own tools say what may be written."""

    def _find(self, path: str) -> tuple[str, os.stat_result]:
        if self._files is None:
            raise PermissionError("the test gave no files: ot_sdk.testing.use(files=directory)")
        root = os.path.realpath(self._files)
        at = os.path.realpath(os.path.join(root, path))  # noqa: PTH118 - as everywhere in this package
        if os.path.commonpath((root, at)) != root:
            raise PermissionError(f"{path!r} is outside of the test's directory")
        return at, os.stat(at)  # noqa: PTH116 - as above

    def _answer(self, name: str, arguments: Mapping[str, Any]) -> Any:
        self.called.append((name, arguments))
        if name not in self._tools:
            raise ToolCallFailed("UnknownTool", f"the test gave no tool '{name}': ot_sdk.testing.use(tools={{...}})")
        tool = self._tools[name]
        if not callable(tool):
            return tool
        try:
            return tool(**arguments)
        except Exception as error:  # noqa: BLE001 - as above
            raise ToolCallFailed(type(error).__name__, str(error)) from None


@contextmanager
def use(
    *,
    config: Any = None,
    secrets: Mapping[str, str] | None = None,
    tools: Mapping[str, Any] | None = None,
    llm: Any = None,
    key: str = "",
    files: str | os.PathLike[str] | None = None,
) -> Generator[StandIn]:
    """Let ot_sdk answer from these: *tools* maps ``pack.tool`` to a function or to the value itself.

    *llm* is what the model answers, or a function of the question; *key* is the call's idempotency key. Paths are
    found below *files*. What is yielded collects ``logs``, ``progressed``, ``called``, ``asked`` and ``images``.
    """
    stand_in = StandIn(config, secrets or {}, tools or {}, llm, key, os.fspath(files) if files is not None else None)
    host.install(stand_in)
    try:
        yield stand_in
    finally:
        host.remove(stand_in)
