"""What the corpus of bad inputs gives the wire, and what tools give: each is survived."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bad_inputs.bad_inputs_corpus import Item, each_item, items, payload
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


WRAPPED = re.compile(
    r'<external-content-(?P<id>[0-9a-f]{32}) source="(?P<source>[^"]*)">\n(?P<inside>.*)\n</external-content-(?P=id)>',
    re.DOTALL,
)
INSIDE_NEVER = re.compile(
    r"</?\s*external-content|__ot|mcp__onetool|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069]"
    "|[\U000e0000-\U000e007f]",
    re.IGNORECASE,
)
"""Marks that would end the wrapping, words that start a run, and characters that a reader does not see."""


@pytest.fixture(scope="module")
def marking_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A server that marks what comes from outside; the pack ``outside`` does."""
    config = CONFIG + "security: {sanitize: untrusted}\n"
    with Watched.started(tmp_path_factory.mktemp("watched"), config) as watched:
        yield watched


def assert_marked(reply: WireReply, source: str) -> list[str]:
    """Return what is inside the marks of each text; there must be marks around every one."""
    insides: list[str] = []
    for text in reply.texts:
        found = WRAPPED.fullmatch(text)
        assert found, text[:200]
        assert source in found["source"]
        assert not INSIDE_NEVER.search(found["inside"])
        insides.append(found["inside"])
    return insides


@each_item("tool_output_injection")
def test_a_text_from_outside_is_marked_and_what_could_break_the_marks_is_taken_out(
    marking_server: Watched, item: Item
) -> None:
    assert_marked(marking_server.run(f"outside.say(id={item['id']!r})"), "outside.say")


@each_item("tool_output_injection")
def test_no_two_marks_are_alike(marking_server: Watched, item: Item) -> None:
    texts = [marking_server.wire.run(f"outside.say(id={item['id']!r})").text for _ in range(2)]
    first, second = (text.partition(" source")[0] for text in texts)
    assert first != second


@each_item("tool_output_injection")
def test_a_program_cannot_turn_off_what_the_operator_turned_on(marking_server: Watched, item: Item) -> None:
    assert_marked(marking_server.run(f"__sanitize__ = False\noutside.say(id={item['id']!r})"), "outside.say")


@each_item("tool_output_injection")
def test_what_is_printed_is_marked_as_well(marking_server: Watched, item: Item) -> None:
    reply = marking_server.run(f"print(outside.say(id={item['id']!r}))\n'done'")
    assert "done" == assert_marked(reply, "outside.say")[-1]


@each_item("tool_output_injection")
def test_an_error_that_carries_the_text_is_marked_as_well(marking_server: Watched, item: Item) -> None:
    reply = marking_server.run(f"outside.fail(id={item['id']!r})")
    assert reply.is_error
    assert_marked(reply, "outside.fail")


@each_item("tool_output_injection")
def test_a_text_inside_a_structure_is_marked_as_well(marking_server: Watched, item: Item) -> None:
    assert_marked(marking_server.run(f"{{'a': [outside.say(id={item['id']!r})[:100]]}}"), "outside.say")


@each_item("tool_output_injection")
def test_a_text_from_outside_is_never_taken_for_a_command(marking_server: Watched, item: Item) -> None:
    program = f"text = outside.say(id={item['id']!r})\n[len(text), brave.search(query='after')[0]['title']]"
    (inside,) = assert_marked(marking_server.run(program), "outside.say")
    assert "after 0" == json.loads(inside)[1]


@pytest.mark.parametrize("ask", ["ot.result(handle={!r})", "ot.result(handle={!r}, limit=1)['lines'][0][:100]"])
def test_a_page_of_a_stored_text_from_outside_is_marked_as_well(marking_server: Watched, ask: str) -> None:
    (inside,) = assert_marked(marking_server.run("outside.say(id='tool_output_injection-15')"), "outside.say")
    assert_marked(marking_server.run(ask.format(json.loads(inside)["handle"])), "ot.result")


OTHERS = """\
ot.version(); ot.health(); ot.tools(); ot.packs(); ot.config(); ot.help()
proj.list(); slow.wait(seconds=0); slow.block(seconds=0); slow.spin(seconds=0)
brave.search(query='x'); prefix.fn(); prefix.strict(); loud.whisper()
noisy.print_(); noisy.raw(); noisy.under(); noisy.child(); noisy.stderr(text='x'); noisy.read_input()
file.list(); file.glob(pattern='*')
"""


def test_calling_many_other_tools_first_changes_nothing(marking_server: Watched) -> None:
    reply = marking_server.run(OTHERS + "outside.say(id='tool_output_injection-03')")
    assert not reply.is_error
    assert_marked(reply, "")


def test_a_program_that_calls_nothing_from_outside_is_left_bare(marking_server: Watched) -> None:
    assert "plain" == marking_server.run("'plain'").text
