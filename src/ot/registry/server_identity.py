"""ServerIdentity: what a proxied server is, wherever its user happens to stand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """A server's name and the hash of what was written of it, whatever directory its client works in.

    A project's server has that project as its ``owner``. ``former`` is the hash under which older versions kept what
    they knew of the server, one for each directory.
    """

    server: str
    written: str
    owner: str = field(default="", compare=False)
    former: str = field(default="", compare=False)

    @classmethod
    def of(
        cls,
        server: str,
        *,
        command: str = "",
        args: Iterable[str] = (),
        url: str = "",
        cwd: str = "",
        env: Iterable[str] = (),
        headers: Iterable[str] = (),
        owner: str = "",
        former: str = "",
    ) -> ServerIdentity:
        """Return the identity of a server from its settings as they were written, references unfilled.

        Of *env* and *headers* the names count: a new value is a new secret, not another server.
        """
        parts = [command, list(args), url, cwd, sorted(env), sorted(name.lower() for name in headers), owner]
        return cls(server, _hash(parts)[:16], owner, former)


def former_hash(command: str, args: Iterable[str], cwd: str, url: str) -> str:
    """Return the hash of a server's address as older versions made it: with secrets, and with the directory."""
    return _hash([command, list(args), cwd, url])


def _hash(parts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
