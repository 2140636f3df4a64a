"""ProxyTarget: what a proxied tool is called at its server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PROXY = "proxy:"
"""A proxied tool's source is this and the server's name."""


@dataclass(frozen=True, slots=True)
class ProxyTarget:
    """The server, the tool's own name there or the method to call, and parameters that have another name there."""

    server: str
    tool: str = ""
    method: str = ""
    names: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, target: str) -> ProxyTarget:
        """Return what a tool's ``target`` says."""
        return cls(**json.loads(target))

    def text(self) -> str:
        """Return the ``target`` of a tool."""
        parts: dict[str, Any] = {"server": self.server, "tool": self.tool, "method": self.method}
        return json.dumps({key: value for key, value in parts.items() if value} | {"names": dict(self.names)})

    def sent(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return *arguments* under the names that the server knows."""
        return {self.names.get(name, name): value for name, value in arguments.items()}
