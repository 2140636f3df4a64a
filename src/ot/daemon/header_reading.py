"""Reads the header that a relay sends, which anybody of this user could have written."""

from __future__ import annotations

from ot.relay.header import LENGTH_BYTES, MAGIC, Header

PREFIX_BYTES = len(MAGIC) + LENGTH_BYTES
MAX_BYTES = 8 << 20
"""More than a process can be given as arguments and environment."""


class MalformedHeader(ValueError):
    """The bytes are not a header of this protocol."""


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
