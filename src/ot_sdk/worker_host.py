"""WorkerHost: answers a pack's calls of ot_sdk inside a worker."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ot_sdk import tagged
from ot_sdk.call import current_call
from ot_sdk.errors import NoConfig, SecretNotGranted
from ot_sdk.failure import cut
from ot_sdk.levels import check_level
from ot_sdk.line import Line
from ot_sdk.outgoing import Outgoing, send_from
from ot_sdk.secret import Redactor, Secret
from ot_sdk.wire import notification

MAX_TEXT = 65_536
MAX_FIELD_PARTS = 10_000


class WorkerHost:
    """Speaks to the server for the one pack of this process."""

    def __init__(self, pack: str, secrets: Mapping[str, str], redactor: Redactor, line: Line, out: Outgoing) -> None:
        self._pack = pack
        self._secrets = secrets
        self._redact = redactor
        self._line = line
        self._outgoing = out
        self._config: Any = None
        self._imported = False

    def imported(self, config: Any) -> None:
        """Note that the pack is there, with *config* as its settings."""
        self._imported = True
        self._config = config

    def config(self) -> Any:
        """Return the pack's settings."""
        if not self._imported:
            raise NoConfig("settings can be read once the pack is imported: call ot_sdk.config() inside a tool")
        if self._config is None:
            raise NoConfig(f"pack '{self._pack}' has no settings: give it a dataclass named Config")
        return self._config

    def secret(self, name: str) -> Secret:
        """Return a secret that the pack was given."""
        if name not in self._secrets:
            raise SecretNotGranted(name, self._pack)
        return Secret(self._secrets[name])

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        """Send a line for the server's log."""
        check_level(level)
        text = cut(self._redact.text(str(message)), MAX_TEXT)
        self._notify("log", {"level": level, "message": text, "fields": self._plain(fields)})

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Tell the server how far the call is."""
        if current_call.get() is not None:
            text = cut(self._redact.text(str(message)), MAX_TEXT)
            self._notify("progress", {"done": done, "total": total, "message": text})

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the value of another tool."""
        asyncio = sys.modules.get("asyncio")
        if asyncio is not None and asyncio._get_running_loop() is not None:
            raise RuntimeError("call_tool() would block the event loop: write `await ot_sdk.acall_tool(...)`")
        return self._outgoing.call(name, arguments)

    async def acall_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the value of another tool, without blocking the event loop."""
        return await self._outgoing.acall(name, arguments)

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        call = current_call.get()
        send_from(call, self._line, notification(method, {"id": call.id if call else None, **params}))

    def _plain(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        plain = {name: self._plain_field(value) for name, value in fields.items()}
        return plain if tagged.has_plain_keys(plain) else tagged.tagged("dict", list(plain.items()))

    def _plain_field(self, value: Any) -> Any:
        encoder = tagged.Encoder(max_nodes=MAX_FIELD_PARTS, redact=self._redact.text, redact_bytes=self._redact.data)
        try:
            return encoder.encode(value)
        except Exception:  # noqa: BLE001 - values run other people's code, and a note must not fail the call
            return f"<{type(value).__name__}>"
