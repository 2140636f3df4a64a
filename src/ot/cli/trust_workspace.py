"""What onetool trust shows and records of the servers that would start in a directory."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ot.visible_text import printable

if TYPE_CHECKING:
    from ot.config.load import Loaded
    from ot.config.paths import Paths
    from ot.config.trust import ServerHere, Trust


@dataclass(frozen=True, slots=True)
class ServersHere:
    """The servers whose ``cwd`` is in one workspace: their command lines, and what launchers would obey there."""

    workspace: Path
    lines: Mapping[str, str]
    servers: Mapping[str, ServerHere]

    @classmethod
    def of(cls, loaded: Loaded, paths: Paths) -> ServersHere:
        """Return those of this configuration."""
        from ot.execution.servers.spec_of_server import servers_here

        servers = servers_here(loaded, paths)
        given = loaded.config.servers
        lines = {name: shlex.join([given[name].command, *given[name].args]) for name in servers}
        return cls(paths.cwd, lines, servers)

    def render(self) -> Iterator[str]:
        """Yield what a person should look at; nothing when no server would start here."""
        if not self.servers:
            return
        yield f"servers that start in {printable(str(self.workspace))} ({len(self.servers)})"
        yield from (f"  {printable(name)}  {printable(line)}" for name, line in self.lines.items())
        files = {name: text for server in self.servers.values() for name, text in server.files.items()}
        yield f"what their launchers obey or execute there ({len(files)})"
        yield from (f"  {printable(name)}  {text.rpartition(':')[2][:16]}" for name, text in sorted(files.items()))

    def plain(self) -> dict[str, Any]:
        """Return the same for a program."""
        return {name: {"runs": line, "obeys": dict(self.servers[name].files)} for name, line in self.lines.items()}

    def record(self, book: Trust) -> None:
        """Let these servers start here, and no others."""
        if self.servers or book.servers_in(self.workspace):
            book.trust_servers_in(self.workspace, self.servers)
