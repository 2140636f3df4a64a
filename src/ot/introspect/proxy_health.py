"""How the proxied servers are, as ``ot.health()`` tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNUSED = "a server without a problem is connected by its first call"


def proxy_health(servers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return status, count, whether each server is connected, and the problems of those that have one."""
    states = {name: _word(server) for name, server in servers.items()}
    away = [name for name, state in states.items() if state == "disconnected"]
    problems = {name: str(why) for name, server in servers.items() if (why := server.get("why") or server.get("noise"))}
    return {
        "status": "degraded" if away else "ok",
        "server_count": len(servers),
        "servers": states,
        **({"problems": problems} if problems else {}),
        **({"note": UNUSED} if any(servers[name]["state"] != "failed" for name in away) else {}),
    }


def _word(server: Mapping[str, Any]) -> str:
    return "connected" if server["state"] == "connected" else "disconnected"
