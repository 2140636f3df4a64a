"""LearnedShapes: what results of proxied tools look like, for tools that do not say it themselves."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ot.files.private_file import hold_lock
from ot.proxied.catalogue_files import read_or_forget, server_file, write_json
from ot.registry.proxy_target import ProxyTarget, ServerIdentity
from ot.registry.tool import Tool
from ot.registry.value_shape import Shape, merge, shape_of, shape_of_json, shape_text, shape_to_json

logger = logging.getLogger(__name__)

WRITE_SECONDS = 2.0
MAX_TOOLS = 5000


@dataclass(frozen=True, slots=True)
class Observed:
    """The shape of a tool's results, under the hash of the definition that it was seen with, and how often."""

    hash: str
    count: int
    shape: Shape

    @property
    def text(self) -> str:
        """The shape as a type."""
        return shape_text(self.shape)

    def and_also(self, later: Observed) -> Observed:
        """Return both together; of two definitions the later one counts alone."""
        if later.hash != self.hash:
            return later
        return Observed(self.hash, self.count + later.count, merge(self.shape, later.shape))


class LearnedShapes:
    """Names and types of results, by server and tool; no value is ever kept.

    What is learned is used at once and written a little later by a thread of its own, together with what other
    processes have learned meanwhile.
    """

    def __init__(self, directory: Path, write_seconds: float = WRITE_SECONDS) -> None:
        """Keep one file a server in *directory*."""
        self._directory = directory
        self._write_seconds = write_seconds
        self._lock = threading.Lock()
        self._known: dict[ServerIdentity, dict[str, Observed]] = {}
        self._unwritten: dict[ServerIdentity, dict[str, Observed]] = {}
        self._revisions: dict[ServerIdentity, int] = {}
        self._timer: threading.Timer | None = None

    def learn(self, server: ServerIdentity, tool: str, definition_hash: str, value: Any) -> None:
        """Take note of the shape of a successful result; the work is bounded, and nothing is written here."""
        new = Observed(definition_hash, 1, shape_of(value))
        with self._lock:
            known = self._of_server(server)
            before = known.get(tool)
            if before is None and len(known) >= MAX_TOOLS:
                return
            after = before.and_also(new) if before else new
            known[tool] = after
            _add(self._unwritten.setdefault(server, {}), {tool: new})
            if before is None or after.shape != before.shape or _is_round(after.count):
                self._revisions[server] = self._revisions.get(server, 0) + 1
            if self._timer is None:
                self._timer = threading.Timer(self._write_seconds, self.flush)
                self._timer.daemon = True
                self._timer.start()

    def learn_from(self, tool: Tool, value: Any) -> None:
        """Take note of what *tool* returned, when its server does not tell the type itself."""
        if tool.definition and (tool.observed or not tool.returns):
            target = ProxyTarget.of(tool.target)
            self.learn(target.identity, target.tool, tool.definition, value)

    def look_up(self, server: ServerIdentity, tool: str, definition_hash: str) -> Observed | None:
        """Return what was learned of the tool as now defined."""
        with self._lock:
            found = self._of_server(server).get(tool)
        return found if found and found.hash == definition_hash else None

    def revision(self, server: ServerIdentity) -> int:
        """Return a number that grows when there is something new to show of the server."""
        return self._revisions.get(server, 0)

    def flush(self) -> None:
        """Write what is not written yet; call it at the end, off the event loop."""
        with self._lock:
            waiting, self._unwritten = self._unwritten, {}
            timer, self._timer = self._timer, None
        if timer:
            timer.cancel()
        for server, learned in waiting.items():
            try:
                self._write(server, learned)
            except (OSError, ValueError) as error:
                logger.warning("what was learned of %s could not be written: %s", server.server, error)

    def _write(self, server: ServerIdentity, learned: Mapping[str, Observed]) -> None:
        path = self._file(server)
        with hold_lock(path):
            together = self._read(server)
            _add(together, learned)
            write_json(path, {"version": 1, "server": server.server, "tools": _plain(together)})
        with self._lock:
            # What was learned while this was written is not lost: it waits for the next time.
            _add(together, self._unwritten.get(server, {}))
            self._known[server] = together

    def _of_server(self, server: ServerIdentity) -> dict[str, Observed]:
        if server not in self._known:
            self._known[server] = self._read(server)
        return self._known[server]

    def _read(self, server: ServerIdentity) -> dict[str, Observed]:
        path = self._file(server)
        # Older versions had one file for all servers of a name; what it holds counts for the same definitions alone.
        return _read(path if path.exists() else server_file(self._directory, server.server, "shapes"))

    def _file(self, server: ServerIdentity) -> Path:
        return server_file(self._directory, server.server, "shapes", server.written)


def _add(known: dict[str, Observed], later: Mapping[str, Observed]) -> None:
    for tool, new in later.items():
        known[tool] = known[tool].and_also(new) if tool in known else new


def _is_round(count: int) -> bool:
    """Return whether *count* is worth showing: one digit, then noughts."""
    return not str(count)[1:].strip("0")


def _plain(known: Mapping[str, Observed]) -> dict[str, Any]:
    return {
        tool: {"hash": found.hash, "count": found.count, "shape": shape_to_json(found.shape)}
        for tool, found in known.items()
    }


def _read(path: Path) -> dict[str, Observed]:
    known: dict[str, Observed] = {}
    tools: dict[str, Any] = read_or_forget(path).get("tools") or {}
    try:
        for tool, found in tools.items():
            known[tool] = Observed(str(found["hash"]), int(found["count"]), shape_of_json(found["shape"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        logger.warning("%s is damaged: what it held will be learned again", path)
    return known
