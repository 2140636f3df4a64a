"""Bytes on the server's standard input that are hardly messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bad_inputs.bad_inputs_corpus import Item, items, payload
from faults.watched import CONFIG, Place, Watched, peak_growth_mb, start_wire
from mcp_wire import ServerGone, WireReply

PARSE, REQUEST, METHOD, PARAMS = -32700, -32600, -32601, -32602


@dataclass(frozen=True)
class Answer:
    """The one reply that an entry gets: an error's code, or 0 for a result, and the id that it carries."""

    code: int
    id: Any = None
    is_error: bool = False


NONE = None
"""Nothing is asked, so nothing is answered."""
FAILED = Answer(0, 1, is_error=True)
"""The protocol's own way to refuse a tool's arguments, so that a model can read what was wrong."""

ANSWERS: dict[str, Answer | None] = {
    **{f"jsonrpc_stdio-{n:02}": Answer(PARSE) for n in (1, 2, 29, 30, 31, 32, 33, 37, 38)},
    **{f"jsonrpc_stdio-{n:02}": Answer(REQUEST) for n in (4, 5, 6, 7, 8, 9, 13, 14, 15, 16, 35)},
    **{f"jsonrpc_stdio-{n:02}": Answer(REQUEST, 1) for n in (10, 11, 12, 19, 20, 28)},
    **{f"jsonrpc_stdio-{n:02}": NONE for n in (3, 25, 26, 27)},
    **{f"jsonrpc_stdio-{n:02}": FAILED for n in (21, 22, 23, 24)},
    "jsonrpc_stdio-17": Answer(0, 2),  # of a doubled key the last one counts, as everywhere in JSON
    "jsonrpc_stdio-18": Answer(METHOD, 1),
    "jsonrpc_stdio-34": Answer(0, "i" * 1_000_000),
}
CLOSED = "jsonrpc_stdio-36"
"""The entry that ends its connection."""


def raw(item: Item) -> bytes:
    found = payload(item)
    data = found if isinstance(found, bytes) else found.encode()
    return data if data.endswith(b"\n") else data + b"\n"


@pytest.fixture
def quiet(server: Watched) -> Iterator[Watched]:
    """The server with its answers so far put aside, so that the entry's own ids are free."""
    server.wire.answers.clear()
    yield server
    server.wire.answers.clear()


each_line = pytest.mark.parametrize(
    "item", [pytest.param(item, id=item["id"]) for item in items("jsonrpc_stdio") if item["id"] != CLOSED]
)


@each_line
def test_a_line_gets_the_one_answer_that_json_rpc_has_for_it(quiet: Watched, item: Item) -> None:
    data = raw(item)
    wire = quiet.wire

    def send() -> list[WireReply]:
        wire.answers.clear()
        wire.send_raw(data)
        end = f"end-{item['id']}"
        wire.send("tools/call", {"name": "run", "arguments": {"command": "1"}}, id=end)
        wire.wait(end)  # a run is answered after everything that came before it
        return [reply for id, replies in wire.answers.items() if id != end for reply in replies]

    replies = quiet.survive(send)
    expected = ANSWERS[item["id"]]
    if expected is None:
        assert [] == replies
    elif item["id"] in ("jsonrpc_stdio-37", "jsonrpc_stdio-38"):
        assert {expected.code} <= {reply.error.get("code") for reply in replies}
        assert all(reply.error for reply in replies)
    else:
        (reply,) = replies
        assert (expected.code, expected.id) == (reply.error.get("code", 0), reply.id)
        assert expected.is_error == bool(reply.result.get("isError"))


@each_line
def test_no_line_costs_more_than_the_largest_message(server: Watched, item: Item) -> None:
    data = raw(item)
    assert peak_growth_mb(server.wire, lambda: (server.wire.send_raw(data), server.wire.ping())) <= 33


def test_a_line_that_does_not_end_closes_the_connection_in_bounded_memory(tmp_path: Path) -> None:
    (item,) = [item for item in items("jsonrpc_stdio") if item["id"] == CLOSED]
    data = payload(item)
    assert isinstance(data, bytes)
    with start_wire(Place.make(tmp_path, CONFIG)) as wire:
        wire.run("1")

        def send() -> None:
            with pytest.raises(BrokenPipeError):
                for _ in range(3):  # the last of the first may still fit into the pipe
                    wire.send_raw(data)

        assert peak_growth_mb(wire, send) <= 33
        with pytest.raises((ServerGone, BrokenPipeError)):
            wire.ping()
        assert [REQUEST] == [reply.error["code"] for reply in wire.answers[None]]
        assert [] == wire.stdout_junk
        assert 0 == wire.close()
