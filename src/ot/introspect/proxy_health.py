"""How the proxied servers are, as ``ot.health()`` tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WORDS = {"failed": "disconnected"}


def proxy_health(servers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return status, count, each server's state, and why those are away that are; noise is told of too."""
    states = {name: str(server["state"]) for name, server in servers.items()}
    health: dict[str, Any] = {
        "status": "degraded" if "failed" in states.values() else "ok",
        "server_count": len(servers),
        "servers": {name: WORDS.get(state, state) for name, state in states.items()},
    }
    problems = {name: str(why) for name, server in servers.items() if (why := server.get("why") or server.get("noise"))}
    return health | ({"problems": problems} if problems else {})
