"""Tells whether the packs of a program are the same as at its first start: their sources, and what tools promise."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping

from ot.errors import ToolUnavailable
from ot.registry.tool import Tool, signature_text
from ot.registry.tool_registry import Pack, ToolRegistry
from ot.version import installed_version

type PackFiles = Mapping[str, Mapping[str, bytes]]
"""The files of packs that users wrote, by pack and name."""

SIZE = 16


def packs_used(names: Collection[str], registry: ToolRegistry, files: PackFiles) -> dict[str, str]:
    """Return a fingerprint for each pack among *names*; one whose tools are not known yet has none."""
    found = {name: registry.packs[name] for name in sorted(names) if name in registry.packs}
    known = {name: pack for name, pack in found.items() if not pack.pending}
    return {name: _fingerprint(pack, files.get(name, {})) for name, pack in known.items()}


def _fingerprint(pack: Pack, files: Mapping[str, bytes]) -> str:
    hashed = hashlib.blake2b(pack.source.encode(), digest_size=SIZE)
    if pack.bundled:
        hashed.update(installed_version().encode())
    for name in sorted(files):
        hashed.update(b"\0".join((name.encode(errors="surrogatepass"), files[name], b"")))
    try:
        for tool in sorted(pack.tools.values(), key=lambda tool: tool.name):
            hashed.update(_promise(tool).encode(errors="surrogatepass"))
    except ToolUnavailable as error:
        hashed.update(str(error).encode(errors="surrogatepass"))
    return hashed.hexdigest()


def _promise(tool: Tool) -> str:
    # Not what was learned of its values: that changes without the pack.
    said = (signature_text(tool).partition(" -> ")[0], tool.doc, tool.definition, tool.read_only, tool.destructive)
    return "\0".join(map(str, said)) + "\0"
