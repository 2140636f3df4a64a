"""The header of a connection: read as it was packed, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from ot.daemon.handshake import MAX_BYTES, PREFIX_BYTES, MalformedHeader, body_bytes, read_body
from ot.relay.header import MAGIC, Header

HEADER = Header(b"a key\nof lines", b"/w/\xff", (b"serve", b"--packs=a b", b""), {b"A": b"1=2", b"EMPTY": b""})


def test_a_header_is_read_as_it_was_packed() -> None:
    packed = HEADER.pack()
    assert body_bytes(packed[:PREFIX_BYTES]) == len(packed) - PREFIX_BYTES
    read = read_body(packed[PREFIX_BYTES:])
    assert (read.key, read.cwd, read.argv, read.environ) == (HEADER.key, HEADER.cwd, HEADER.argv, HEADER.environ)


@pytest.mark.parametrize(
    "prefix", [b"onetool2" + bytes(4), MAGIC + (MAX_BYTES + 1).to_bytes(4, "big"), b'{"jsonrpc":"2']
)
def test_another_protocol_or_an_endless_header_is_refused_before_it_is_read(prefix: bytes) -> None:
    with pytest.raises(MalformedHeader):
        body_bytes(prefix)


@pytest.mark.parametrize(
    "body", [b"", b"key", b"key\0/cwd", b"key\0/cwd\0many", b"key\0/cwd\x002\0one", b"k\0/\0-1\0x"]
)
def test_a_header_with_missing_fields_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedHeader):
        read_body(body)
