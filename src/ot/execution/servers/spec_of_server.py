"""Makes a ServerSpec of a server's settings, with its secrets filled in."""

from __future__ import annotations

import re

from ot.config.models import Server, pack_name
from ot.config.secrets import Secrets
from ot.execution.servers.server_spec import ServerSpec

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def spec_of_server(name: str, server: Server, secrets: Secrets, cwd: str) -> ServerSpec:
    """Return what the server is started or reached with."""
    missing: list[str] = []

    def fill(text: str) -> str:
        def value(found: re.Match[str]) -> str:
            known = secrets.get(found.group(1)) or found.group(2)
            if known is None:
                missing.append(found.group(1))
            return known or ""

        return REFERENCE.sub(value, text)

    return ServerSpec(
        name=name,
        pack=server.pack or pack_name(name),
        command=fill(server.command),
        args=tuple(map(fill, server.args)),
        env={key: fill(value) for key, value in server.env.items()},
        cwd=server.cwd or cwd,
        url=fill(server.url),
        headers={key: fill(value) for key, value in server.headers.items()},
        start_seconds=server.start_seconds,
        call_seconds=server.timeout,
        idle_seconds=server.idle_seconds,
        concurrency=server.concurrency,
        tools=server.tools,
        problem=f"its settings need the secret {missing[0]}, which is not set" if missing else "",
    )
