"""How the proxied servers are, for ``ot.health()``: connected or not, and the logins at them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ot.proxied.auth.login_state import LoginState

LOGIN_NEEDED = "login needed"
UNUSED = "a server without a problem is connected by its first call"


def proxy_health(servers: Mapping[str, Mapping[str, Any]], logins: Mapping[str, LoginState]) -> dict[str, Any]:
    """Return status, count, whether each server is connected, the logins, and the problems of those that have one."""
    states = {name: _connection_state(server, logins.get(name)) for name, server in servers.items()}
    away = [name for name, state in states.items() if state == "disconnected"]
    told = {name: server for name, server in servers.items() if states[name] != LOGIN_NEEDED}
    problems = {name: str(why) for name, server in told.items() if (why := server.get("why") or server.get("noise"))}
    return {
        "status": "degraded" if away else "ok",
        "server_count": len(servers),
        "servers": states,
        **({"logins": {name: _login_row(name, login) for name, login in logins.items()}} if logins else {}),
        **({"problems": problems} if problems else {}),
        **({"note": UNUSED} if any(servers[name]["state"] != "failed" for name in away) else {}),
    }


def _connection_state(server: Mapping[str, Any], login: LoginState | None) -> str:
    if server["state"] == LOGIN_NEEDED or (login and login.is_needed):
        return LOGIN_NEEDED
    return "connected" if server["state"] == "connected" else "disconnected"


def _login_row(name: str, login: LoginState) -> dict[str, Any]:
    """Return a login's state, and what its user can do about it."""
    row = {"state": login.state, "why": login.why, "until": login.until, "scope": login.scope}
    do = {"do": f"onetool auth login {name}"} if login.is_needed else {}
    return {key: text for key, text in row.items() if text} | do
