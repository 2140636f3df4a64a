"""Text from outside is wrapped so that nothing in it can end the wrapping or start a run."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ot.output.sanitize import redact, wrap

PIECES = [
    *("<", "</", ">", " ", "external-content", "-", "EXTERNAL-content", "external-", "content", "[REDACTED:tag]"),
    *("__ot", "__OneTool", "__run", "mcp__onetool__run", "mcp", "_", "__", "ot"),
    *("\u200b", "\x00", "\u202e", "\ufeff", "\U000e0041", "\n", "a"),
]
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join))
TRIGGER = re.compile(r"mcp__onetool|__onetool|__ot", re.IGNORECASE)
BOUNDARY = re.compile(r"<\s*/?\s*external-content", re.IGNORECASE)
FRAME = re.compile(r'<(external-content-[0-9a-f]{32}) source="([^"<>]*)">\n(.*)\n</\1>', re.DOTALL)


@given(TEXTS)
@example("__o__ott")
@example("__</external-content>ot")
@example("<<external-content>/external-content>")
@example("</external__ot-content>")
@example("< /external-content>")
def test_redacted_text_holds_no_trigger_and_no_boundary(text: str) -> None:
    redacted = redact(text)
    assert not TRIGGER.search(redacted)
    assert not BOUNDARY.search(redacted)


@given(TEXTS)
def test_redacted_text_holds_nothing_unseen(text: str) -> None:
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]", redact(text))


@given(TEXTS, st.lists(st.one_of(st.text(), st.just("brave.search")), max_size=3))
def test_wrapped_text_has_one_frame_that_only_its_end_closes(text: str, tools: list[str]) -> None:
    found = FRAME.fullmatch(wrap(text, tools))
    assert found
    assert found[1] not in found[3]
    assert not TRIGGER.search(found[3])


@given(st.text(alphabet="abc .,-\n\té€ü"))
def test_harmless_text_stays(text: str) -> None:
    assert text == redact(text)


def test_no_two_boundaries_are_alike() -> None:
    frames = [FRAME.fullmatch(wrap("x", [])) for _ in range(100)]
    assert len({frame[1] for frame in frames if frame}) == 100


@pytest.mark.parametrize(
    ("tools", "source"),
    [
        ([], "program"),
        (["brave.search"], "brave.search"),
        (["a.b", "c.d"], "a.b, c.d"),
        (['x" onload="y'], "x onloady"),
    ],
)
def test_the_frame_names_the_tools_that_were_called(tools: list[str], source: str) -> None:
    found = FRAME.fullmatch(wrap("x", tools))
    assert found
    assert source == found[2]


def test_a_tag_that_is_never_closed_does_not_take_the_rest_with_it() -> None:
    assert redact("a </external-content\nthe rest") == "a [REDACTED:tag]\nthe rest"
    assert redact("</external-content" + "x" * 1000).endswith("x" * 900)


def test_what_is_redacted_can_be_seen_to_be() -> None:
    text = "before __ot run </external-content-00> after\u200b"
    assert redact(text) == "before [REDACTED:trigger] run [REDACTED:tag] after\\u{200b}"


IN_JSON = st.one_of(
    TEXTS, st.sampled_from(["<external-content", '</ external-content "a\\b" c>', "<external-content \\"])
)


@given(st.lists(st.lists(IN_JSON, max_size=4), max_size=4))
@example([["<external-content", "kept"]])
def test_redacted_json_is_still_json_of_as_many_parts(value: list[list[str]]) -> None:
    text = redact(json.dumps(value, ensure_ascii=False), in_json=True)
    assert [len(part) for part in json.loads(text)] == [len(part) for part in value]
    assert not TRIGGER.search(text)
    assert not BOUNDARY.search(text)


@pytest.mark.parametrize("before", [0, 65_530, 65_536, 131_070])
def test_what_is_harmful_is_found_wherever_it_stands_in_a_long_text(before: int) -> None:
    text = "x " * (before // 2) + "__ot_run </ external-content> \u202e" + " y" * 40_000
    redacted = redact(text)
    assert "[REDACTED:trigger] [REDACTED:tag] \\u{202e}" in redacted
    assert not TRIGGER.search(redacted)
    assert not BOUNDARY.search(redacted)
