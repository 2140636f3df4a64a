"""Texts of others that want to be taken for instructions, on a server whose operator marks them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from bad_inputs.bad_inputs_corpus import Item, each_item
from faults.watched import CONFIG, Watched
from mcp_wire import WireReply

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
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
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
def test_a_text_from_outside_is_marked_and_what_could_break_the_marks_is_taken_out(server: Watched, item: Item) -> None:
    assert_marked(server.run(f"outside.say(id={item['id']!r})"), "outside.say")


@each_item("tool_output_injection")
def test_no_two_marks_are_alike(server: Watched, item: Item) -> None:
    texts = [server.wire.run(f"outside.say(id={item['id']!r})").text for _ in range(2)]
    first, second = (text.partition(" source")[0] for text in texts)
    assert first != second


@each_item("tool_output_injection")
def test_a_program_cannot_turn_off_what_the_operator_turned_on(server: Watched, item: Item) -> None:
    assert_marked(server.run(f"__sanitize__ = False\noutside.say(id={item['id']!r})"), "outside.say")


@each_item("tool_output_injection")
def test_what_is_printed_is_marked_as_well(server: Watched, item: Item) -> None:
    reply = server.run(f"print(outside.say(id={item['id']!r}))\n'done'")
    assert "done" == assert_marked(reply, "outside.say")[-1]


@each_item("tool_output_injection")
def test_an_error_that_carries_the_text_is_marked_as_well(server: Watched, item: Item) -> None:
    reply = server.run(f"outside.fail(id={item['id']!r})")
    assert reply.is_error
    assert_marked(reply, "outside.fail")


@each_item("tool_output_injection")
def test_a_text_inside_a_structure_is_marked_as_well(server: Watched, item: Item) -> None:
    assert_marked(server.run(f"{{'a': [outside.say(id={item['id']!r})[:100]]}}"), "outside.say")


@each_item("tool_output_injection")
def test_a_text_from_outside_is_never_taken_for_a_command(server: Watched, item: Item) -> None:
    program = f"text = outside.say(id={item['id']!r})\n[len(text), brave.search(query='after')[0]['title']]"
    (inside,) = assert_marked(server.run(program), "outside.say")
    assert "after 0" == json.loads(inside)[1]


@pytest.mark.parametrize("ask", ["ot.result(handle={!r})", "ot.result(handle={!r}, limit=1)['lines'][0][:100]"])
def test_a_page_of_a_stored_text_from_outside_is_marked_as_well(server: Watched, ask: str) -> None:
    (inside,) = assert_marked(server.run("outside.say(id='tool_output_injection-15')"), "outside.say")
    assert_marked(server.run(ask.format(json.loads(inside)["handle"])), "ot.result")


OTHERS = """\
ot.version(); ot.health(); ot.tools(); ot.packs(); ot.config(); ot.help()
proj.list(); slow.wait(seconds=0); slow.block(seconds=0); slow.spin(seconds=0)
brave.search(query='x'); prefix.fn(); prefix.strict(); loud.whisper()
noisy.print_(); noisy.raw(); noisy.under(); noisy.child(); noisy.stderr(text='x'); noisy.read_input()
file.list(); file.glob(pattern='*')
"""


def test_calling_many_other_tools_first_changes_nothing(server: Watched) -> None:
    reply = server.run(OTHERS + "outside.say(id='tool_output_injection-03')")
    assert not reply.is_error
    assert_marked(reply, "")


def test_a_program_that_calls_nothing_from_outside_is_left_bare(server: Watched) -> None:
    assert "plain" == server.run("'plain'").text
