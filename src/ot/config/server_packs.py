"""Which pack each server becomes; two may not become the same one."""

from __future__ import annotations

from ot.config.document import Node
from ot.config.models import pack_name
from ot.config.problems import Problem


def clashing_packs(node: Node) -> list[Problem]:
    """Return a problem for every server in use whose pack another one before it gives already."""
    servers = node.get("servers")
    seen: dict[str, Node] = {}
    found: list[Problem] = []
    for name, server in servers.entries.items() if servers else ():
        if (enabled := server.get("enabled")) and enabled.value is False:
            continue
        pack = _pack(name, server)
        if pack in seen:
            first = seen[pack].place
            text = f"servers.{name} becomes the pack '{pack}', as another server does ({first.file}:{first.line})"
            found.append(Problem(server.place, f"{text}: give one of them another name with 'pack:'"))
        seen.setdefault(pack, server)
    return found


def _pack(name: str, server: Node) -> str:
    given = server.get("pack")
    return str(given.value) if given and given.value else pack_name(name)
