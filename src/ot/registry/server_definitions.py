"""ServerDefinitions: what a proxied MCP server says that it offers, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ServerDefinitions:
    """The server's own lists, as they came over the wire (camelCase keys), and when (seconds since the epoch)."""

    tools: tuple[Mapping[str, Any], ...] = ()
    prompts: tuple[Mapping[str, Any], ...] = ()
    has_resources: bool = False
    instructions: str = ""
    server_info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    listed_at: float = 0.0
