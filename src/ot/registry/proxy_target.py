"""ProxyTarget: what a proxied tool is called at its server; ServerIdentity: which server that is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PROXY = "proxy:"
"""A proxied tool's source is this and the server's name."""
BACKEND = "mcp_proxy"
"""What carries out the calls of proxied tools; their targets are a ProxyTarget."""
BLOCK = "block"
"""The key under which a program's value names a non-text content block."""


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """A server's name and the hash of what was written of it, whatever directory its client works in.

    A project's server has that project as its ``owner``, and that of another principal than the user of this process
    has the principal. ``former`` is the hash under which older versions kept what they knew of the server, one for each
    directory; ``common`` the user's own, where what is known of that one holds for this one too.
    """

    server: str
    written: str
    owner: str = field(default="", compare=False)
    former: str = field(default="", compare=False)
    common: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ProxyTarget:
    """The server, the tool's own name there or the method to call, and parameters that have another name there.

    ``form`` is set where the server is another OneTool: values cross in that form, and not as JSON has them.
    """

    server: str
    written: str = ""
    tool: str = ""
    method: str = ""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    form: int = 0

    @classmethod
    def of(cls, target: str) -> ProxyTarget:
        """Return the parsed ``target`` of a tool."""
        return cls(**json.loads(target))

    def text(self) -> str:
        """Return the ``target`` of a tool."""
        parts = {"server": self.server, "written": self.written, "tool": self.tool, "method": self.method}
        given: dict[str, Any] = {key: value for key, value in {**parts, "form": self.form}.items() if value}
        return json.dumps(given | {"names": dict(self.names)})

    @property
    def identity(self) -> ServerIdentity:
        """The server, as far as what is learned of its tools depends on it."""
        return ServerIdentity(self.server, self.written)

    def rename_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return *arguments* under the names that the server knows."""
        return {self.names.get(name, name): value for name, value in arguments.items()}
