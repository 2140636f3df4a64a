"""OperatorAudit: what an operator's commands change is written down before and after, where there is an audit log."""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
import orjson

from onetool_team.operating.replicas import Replicas
from onetool_team.telemetry.audit_log import AuditLog
from ot.errors import ConfigError
from ot.visible_text import visible_json

UNWRITTEN = "the audit log cannot be written, and telemetry.audit_required is set: nothing was done"


class OperatorAudit:
    """Writes to the file, or, where replicas write to their standard output, has one of them write."""

    def __init__(self, log: AuditLog | None, replicas: Replicas, *, by_replica: bool, required: bool) -> None:
        """Write to *log*; None: there is none here."""
        self._log = log
        self._replicas = replicas
        self._by_replica = by_replica
        self._required = required

    @asynccontextmanager
    async def noting(self, command: str, about: Mapping[str, Any]) -> AsyncGenerator[None]:
        """Write that *command* is done in the block, and how that ended.

        Raises:
            ConfigError: It cannot be written, and must be.
        """
        entry = {"host": socket.gethostname(), "operator": getpass.getuser(), "command": f"team {command}", **about}
        if not await self._write(entry, "sent") and self._required:
            raise ConfigError(UNWRITTEN)
        outcome = "failed"
        try:
            yield
            outcome = "done"
        finally:
            await self._write(entry, outcome)

    async def _write(self, entry: Mapping[str, Any], outcome: str) -> bool:
        line = orjson.dumps({"ts": round(time.time(), 3), **entry, "outcome": outcome})
        if self._log:
            return await anyio.to_thread.run_sync(self._log.write, line)
        if not self._by_replica:
            return True
        answers = await self._replicas.ask("audit", {"line": visible_json(line.decode())}, most=1)
        return any(answer.get("written") for answer in answers.values())
