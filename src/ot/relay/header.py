"""The first bytes of a connection to the shared server: whose it is, where it works, and what it asks for."""

from __future__ import annotations

MAGIC = b"onetool1"
"""The protocol of the header; the daemon refuses every other."""
PREFIX_BYTES = len(MAGIC) + 4
MAX_BYTES = 8 << 20
"""More than a process can be given as arguments and environment."""
WELCOME, REFUSAL = b"+", b"-"
"""How the daemon's one line begins; a refusal goes on with its reason."""
CONTROL = b"control"
"""The first argument of a connection that asks about the daemon itself."""
COMMAND = b"command"
"""That of a command typed at a terminal; the second says which, as JSON."""


class MalformedHeader(ValueError):
    """The bytes are not a header of this protocol."""


class Header:
    """What the daemon learns of a client before its first message."""

    __slots__ = ("argv", "cwd", "environ", "key")

    def __init__(self, key: bytes, cwd: bytes, argv: tuple[bytes, ...], environ: dict[bytes, bytes]) -> None:
        """Say which build asks, from which directory, with which arguments and environment."""
        self.key = key
        self.cwd = cwd
        self.argv = argv
        self.environ = environ

    def packed(self) -> bytes:
        """Return the bytes to send; none of the fields can hold a zero byte, so these divide them."""
        variables = [name + b"=" + value for name, value in self.environ.items()]
        body = b"\0".join([self.key, self.cwd, b"%d" % len(self.argv), *self.argv, *variables])
        return MAGIC + len(body).to_bytes(4, "big") + body


def body_bytes(prefix: bytes) -> int:
    """Return how many bytes follow the first ``PREFIX_BYTES``.

    Raises:
        MalformedHeader: It is another protocol, or longer than any client's.
    """
    length = int.from_bytes(prefix[len(MAGIC) :], "big")
    if not prefix.startswith(MAGIC) or length > MAX_BYTES:
        raise MalformedHeader("not a header of this version")
    return length


def read_body(body: bytes) -> Header:
    """Return the header whose bytes after the prefix are *body*.

    Raises:
        MalformedHeader: A field is missing.
    """
    try:
        key, cwd, count, *rest = body.split(b"\0")
        number = int(count)
    except ValueError:
        raise MalformedHeader("fields are missing") from None
    if not 0 <= number <= len(rest):
        raise MalformedHeader("arguments are missing")
    pairs = (entry.partition(b"=") for entry in rest[number:])
    return Header(key, cwd, tuple(rest[:number]), {name: value for name, _, value in pairs})
