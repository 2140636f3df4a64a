"""Any bytes, cut in any way, become the same lines."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from ot.servers.messages import OutputLines, StrayOutput


class Chunks:
    """A stream of given pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = list(pieces)

    async def read(self, n: int = -1, /) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


def lines_of(pieces: list[bytes], most: int = 100) -> tuple[list[bytes], StrayOutput]:
    """Return the lines of *pieces*, and what was noise."""

    async def read() -> list[bytes]:
        found: list[bytes] = []
        while (line := await reader.line()) is not None:
            found.append(line)
        return found

    noise = StrayOutput("any")
    reader = OutputLines(Chunks([piece for piece in pieces if piece]), noise, most)
    return asyncio.run(read()), noise


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_where_a_stream_is_cut_does_not_matter(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    expected = [line for line in whole.split(b"\n")[:-1] if line.strip() and len(line) <= 100]
    assert lines_of(pieces)[0] == expected
    assert lines_of([whole])[0] == expected


def test_a_line_that_is_too_long_is_noise_and_the_next_is_read() -> None:
    lines, noise = lines_of([b"a" * 60, b"a" * 60, b"\nshort\n"])
    assert lines == [b"short"]
    assert "120 bytes, more than 100" in noise.text


def test_a_last_line_without_an_end_is_noise() -> None:
    lines, noise = lines_of([b"one\ntw"])
    assert lines == [b"one"]
    assert "'tw' (its end is missing)" in noise.text


def test_noise_is_escaped_cut_and_counted() -> None:
    noise = StrayOutput("any")
    assert noise.text == ""
    for _ in range(1000):
        noise.add(b"\x1b[31mred\x07" + b"x" * 10_000)
    assert "1,000 lines" in noise.text
    assert "\\x1b[31mred\\x07" in noise.text
    assert len(noise.text) < 400
