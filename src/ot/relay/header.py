"""The first bytes of a connection to the shared server: whose it is, where it works, and what it asks for."""

from __future__ import annotations

MAGIC = b"onetool1"
"""The protocol of the header; the daemon refuses every other."""
LENGTH_BYTES = 4
WELCOME, REFUSAL, NOT_NOW = b"+", b"-", b"?"
"""How the daemon's one line begins; a refusal, for good or for this moment, goes on with its reason."""
CONTROL = b"control"
"""The first argument of a connection that asks about the daemon itself."""
COMMAND = b"command"
"""That of a command typed at a terminal; the second says which, as JSON."""


class Header:
    """What the daemon learns of a client before its first message."""

    __slots__ = ("argv", "cwd", "environ", "key")

    def __init__(self, key: bytes, cwd: bytes, argv: tuple[bytes, ...], environ: dict[bytes, bytes]) -> None:
        """Say which build asks, from which directory, with which arguments and environment."""
        self.key = key
        self.cwd = cwd
        self.argv = argv
        self.environ = environ

    def pack(self) -> bytes:
        """Return the bytes to send; none of the fields can hold a zero byte, so these divide them."""
        variables = [name + b"=" + value for name, value in self.environ.items()]
        body = b"\0".join([self.key, self.cwd, b"%d" % len(self.argv), *self.argv, *variables])
        return MAGIC + len(body).to_bytes(LENGTH_BYTES, "big") + body
