"""ServerSpec: everything that makes one proxied MCP server what it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ot.config.workspace_trust import Seal
from ot.registry.server_identity import ServerIdentity


@dataclass(frozen=True)
class ServerSpec:
    """A server's address with its secrets filled in, and its limits; when that differs, it is another server.

    ``problem`` says why it cannot be started at all: a secret that is missing, for example.
    """

    name: str
    pack: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    start_seconds: float = 30.0
    call_seconds: float | None = None
    idle_seconds: float = 600.0
    concurrency: int = 16
    tools: tuple[str, ...] = ()
    problem: str = ""
    written: ServerIdentity | None = None
    """What its user wrote, where it came from a configuration: filled in and placed, it is another text."""
    workspace: str = ""
    """The directory that its client works in, which it is told as its root."""
    in_workspace: bool = False
    """Whether ``cwd`` is in the workspace, which has to be trusted for it."""
    private: bool = False
    """Whether ``cwd`` is its own private directory, made when it is started."""
    seal: Seal | None = field(default=None, repr=False)
    """What must be unchanged in ``cwd`` when it is started."""

    @cached_property
    def key(self) -> str:
        """What tells this server from every other one; changed values of secrets count, and cannot be read from it."""
        parts = [self.name, self.command, self.args, dict(self.env), self.cwd, self.url, dict(self.headers)]
        # A connection is made for these, too, and would not hear of other ones.
        parts += [self.start_seconds, self.call_seconds, self.idle_seconds, self.concurrency]
        parts += [self.workspace, dict(self.seal.files) if self.seal else None]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def state_unused(self) -> dict[str, str]:
        """How it is before it was ever used: idle, unless it could not be started at all."""
        return {"state": "failed", "why": self.problem} if self.problem else {"state": "idle"}

    @cached_property
    def identity(self) -> ServerIdentity:
        """What its user approved, and what is known of it is kept under."""
        return self.written or ServerIdentity.of(
            self.name, command=self.command, args=self.args, url=self.url, cwd=self.cwd, env=self.env,
            headers=self.headers,
        )  # fmt: skip
