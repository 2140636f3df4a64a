"""Formats of replies, and what marks the text from outside in them."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from ot.output.formats import FORMATS, PAGE_FORMAT, serialize_result
from ot.output.sanitize import neutralize, wrap
from ot.output.stored_text import stored_text
from ot.values.parts import NotSerializable

NUMBERS = st.one_of(
    st.integers(-(1 << 63), (1 << 64) - 1), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
)
JSON = st.recursive(
    st.one_of(NUMBERS, st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(st.text(), inner, max_size=5)),
    max_leaves=20,
)
COLLECTIONS = JSON.filter(lambda value: isinstance(value, list | dict))


@given(COLLECTIONS, st.sampled_from([None, "json", "json_h"]))
def test_json_can_be_read_back(value: Any, format: str | None) -> None:
    assert value == json.loads(serialize_result(value, format))


@given(COLLECTIONS, st.sampled_from(["yml", "yml_h"]))
@example({"a": "\x85 \u2028 \ufeff"}, "yml")
@example(["=", "~", "no", "1e3", "0x1", "1:2", "2020-01-01", "", " ", "a: b", "- c", "# d", "\n", "\t"], "yml")
def test_yaml_can_be_read_back(value: Any, format: str) -> None:
    assert value == yaml.safe_load(serialize_result(value, format))


@given(st.text(), st.sampled_from([None, *FORMATS, "raw", "nonsense"]))
def test_no_format_changes_text(text: str, format: str | None) -> None:
    assert text == serialize_result(text, format)


@given(COLLECTIONS)
def test_raw_is_what_str_says(value: Any) -> None:
    assert str(value) == serialize_result(value, "raw")


@given(JSON, st.one_of(st.text(), st.integers(), st.lists(st.integers()), st.dictionaries(st.text(), st.text())))
def test_an_unknown_format_is_the_default(value: Any, format: Any) -> None:
    expected = serialize_result(value)
    assert expected == serialize_result(value, format if format not in (*FORMATS, "raw") else "nonsense")


VALUE = {"b": [1, {"c": "x y"}], "a": "é"}


@pytest.mark.parametrize(
    ("format", "text"),
    [
        (None, '{"b":[1,{"c":"x y"}],"a":"é"}'),
        ("json", '{"b":[1,{"c":"x y"}],"a":"é"}'),
        ("json_h", '{\n  "b": [\n    1,\n    {\n      "c": "x y"\n    }\n  ],\n  "a": "é"\n}'),
        ("yml", "b:\n- 1\n- {c: x y}\na: é"),
        ("yml_h", "b:\n- 1\n- c: x y\na: é"),
        ("raw", "{'b': [1, {'c': 'x y'}], 'a': 'é'}"),
    ],
)
def test_a_format_looks_like_this(format: str | None, text: str) -> None:
    assert text == serialize_result(VALUE, format)


def test_a_list_of_collections_is_an_item_a_line_in_yaml_flow() -> None:
    assert serialize_result([{"a": 1}, [2], 3], "yml") == "- {a: 1}\n- [2]\n- 3"
    assert serialize_result([1, 2], "yml") == "[1, 2]"


@pytest.mark.scenario("001-22")
def test_in_yaml_flow_simple_objects_are_inline_and_lists_hold_an_object_a_line() -> None:
    assert serialize_result({"a": 1, "b": "x"}, "yml") == "{a: 1, b: x}"
    assert serialize_result({"a": {}, "b": {}, "c": []}, "yml") == "{a: {}, b: {}, c: []}"
    hits = {"tools": [{"name": "a.b", "tags": ["x"]}, {"name": "c.d"}], "tokens": 3}
    assert serialize_result(hits, "yml") == "tools:\n- {name: a.b, tags: [x]}\n- {name: c.d}\ntokens: 3"


@pytest.mark.scenario("001-23")
def test_more_than_two_levels_are_not_inline() -> None:
    two = {"a": {"b": 1}}
    assert serialize_result(two, "yml") == "{a: {b: 1}}"
    assert serialize_result({"x": two, "y": 2}, "yml") == "x: {a: {b: 1}}\ny: 2"
    assert serialize_result({"x": {"y": two, "z": 3}}, "yml") == "x:\n  y: {a: {b: 1}}\n  z: 3"


@given(COLLECTIONS)
def test_no_line_of_yaml_flow_holds_more_than_two_levels(value: Any) -> None:
    assert all(levels(line) <= 2 for line in inline_parts(serialize_result(value, "yml")))


def inline_parts(text: str) -> list[Any]:
    """Return the collections that stand inline, as nodes."""
    found: list[Any] = []

    def walk(node: Any) -> None:
        if getattr(node, "flow_style", False):
            found.append(node)
        elif isinstance(node.value, list):
            for part in node.value:
                for inner in part if isinstance(part, tuple) else [part]:
                    walk(inner)

    walk(yaml.compose(text))
    return found


def levels(node: Any) -> int:
    inner = [part for entry in node.value for part in (entry if isinstance(entry, tuple) else [entry])]
    return 1 + max(levels(part) if isinstance(part.value, list) else 0 for part in inner) if node.value else 0


def test_a_long_object_that_holds_others_is_a_key_a_line() -> None:
    long = "x" * 60
    assert serialize_result({"a": {"b": long}, "c": [long]}, "yml") == f"a: {{b: {long}}}\nc: [{long}]"
    assert serialize_result({"a": long, "b": long, "c": []}, "yml") == f"{{a: {long}, b: {long}, c: []}}"


def test_a_text_of_many_lines_stands_as_it_is_where_that_is_possible() -> None:
    value = [{"name": "web", "how": "one\ntwo", "tools": [{"name": "a"}]}]
    assert serialize_result(value, "yml") == "- name: web\n  how: |-\n    one\n    two\n  tools:\n  - {name: a}"


def test_a_long_list_of_sentences_is_a_sentence_a_line_and_one_of_names_or_numbers_is_not() -> None:
    said = ["It is said.", "\tif x == 'a': y = \"b: c\"", "x" * 120]
    text = serialize_result({"said": said, "count": 3}, "yml")
    assert text == f'said:\n- It is said.\n- "\\tif x == \'a\': y = \\"b: c\\""\n- {"x" * 120}\ncount: 3'
    assert serialize_result(["a b"] * 3, "yml") == "[a b, a b, a b]"
    assert serialize_result(["pack.tool"] * 50, "yml").count("\n") == 0
    assert serialize_result([*range(1000)], "yml").count("\n") == 0


LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=20)


@given(st.lists(LINE | st.sampled_from(["", " ", "  a", "\ta", "a: 'b' # c", "\u2028", "\x07"]), max_size=8))
@example([" ", "", "a", "", " "])
def test_a_page_is_yaml_that_holds_its_lines_as_they_are(lines: list[str]) -> None:
    page = {"lines": lines, "total_lines": 9, "offset": 1, "has_more": True, "note": "a: b", "numbers": [1, 2]}
    text = serialize_result(page, PAGE_FORMAT)
    found = yaml.safe_load(text)
    if isinstance(found["lines"], str):
        assert text.split("\ntotal_lines:")[0].split("\n")[1:] == [f"  {line}" if line else "" for line in lines]
        found["lines"] = found["lines"].removesuffix("\n").split("\n")
    assert found == page


def test_only_what_yaml_cannot_hold_is_escaped_in_a_page() -> None:
    page = {"lines": ["\tif x == 'a': y = \"b: c\"", "é 漢 🎈"], "returned": 2}
    text = "lines: |\n  \tif x == 'a': y = \"b: c\"\n  é 漢 🎈\nreturned: 2"
    assert serialize_result(page, PAGE_FORMAT) == text
    assert serialize_result({"lines": ["\x1b[0m"], "returned": 1}, PAGE_FORMAT) == '{lines: ["\\e[0m"], returned: 1}'
    assert serialize_result({"lines": "none"}, PAGE_FORMAT) == "{lines: none}"
    assert serialize_result([1], PAGE_FORMAT) == "[1]"


@pytest.mark.parametrize(
    ("value", "text"), [(None, "None"), (True, "true"), (1, "1"), (1.5, "1.5"), (math.inf, "Infinity")]
)
def test_a_scalar_is_written_bare(value: Any, text: str) -> None:
    assert text == serialize_result(value)


def test_a_long_line_stays_one_line_in_yaml_flow() -> None:
    assert "\n" not in serialize_result({"a": ["word " * 100]}, "yml")
    assert serialize_result({"a": ["word " * 100] * 20}, "yml").count("\n") == 20


@pytest.mark.parametrize("format", [None, "raw", "yml"])
def test_a_value_within_itself_is_not_presentable(format: str | None) -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(NotSerializable):
        serialize_result(value, format)


@pytest.mark.parametrize("format", [None, "json", "json_h", "yml", "yml_h", "raw"])
def test_an_int_of_any_size_can_be_written(format: str | None) -> None:
    assert "0x1" in serialize_result([10**5000 - 10**5000 + (1 << 20_000)], format)


# ---------------------------------------------------------------- for the result store


@given(COLLECTIONS.filter(bool))
def test_a_stored_collection_has_an_element_or_a_key_a_line(value: Any) -> None:
    text = stored_text(value, None)
    assert value == json.loads(text)
    assert len(value) == len(text.split("\n"))


@pytest.mark.parametrize("format", ["raw", "yml", "yml_h", "json_h"])
def test_a_format_that_was_asked_for_is_stored_as_it_is(format: str) -> None:
    assert serialize_result(VALUE, format) == stored_text(VALUE, format)


def test_text_is_stored_as_it_is() -> None:
    assert stored_text("a\nb", "yml") == "a\nb"


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
def test_neutralized_text_holds_no_trigger_and_no_boundary(text: str) -> None:
    redacted = neutralize(text)
    assert not TRIGGER.search(redacted)
    assert not BOUNDARY.search(redacted)


@given(TEXTS)
def test_neutralized_text_holds_nothing_unseen(text: str) -> None:
    assert not re.search(
        "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]", neutralize(text)
    )


@given(TEXTS, st.lists(st.one_of(st.text(), st.just("brave.search")), max_size=3))
def test_wrapped_text_has_one_frame_that_only_its_end_closes(text: str, tools: list[str]) -> None:
    found = FRAME.fullmatch(wrap(text, tools))
    assert found
    assert found[1] not in found[3]
    assert not TRIGGER.search(found[3])


@given(st.text(alphabet="abc .,-\n\té€ü"))
def test_text_that_could_not_break_the_marks_stays_as_it_is(text: str) -> None:
    assert text == neutralize(text)


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
    assert neutralize("a </external-content\nthe rest") == "a [REDACTED:tag]\nthe rest"
    assert neutralize("</external-content" + "x" * 1000).endswith("x" * 900)


def test_what_is_neutralized_can_be_seen_to_be() -> None:
    text = "before __ot run </external-content-00> after\u200b"
    assert neutralize(text) == "before [REDACTED:trigger] run [REDACTED:tag] after\\u{200b}"


IN_JSON = st.one_of(
    TEXTS, st.sampled_from(["<external-content", '</ external-content "a\\b" c>', "<external-content \\"])
)


@given(st.lists(st.lists(IN_JSON, max_size=4), max_size=4))
@example([["<external-content", "kept"]])
def test_redacted_json_is_still_json_of_as_many_parts(value: list[list[str]]) -> None:
    text = neutralize(json.dumps(value, ensure_ascii=False), in_json=True)
    assert [len(part) for part in json.loads(text)] == [len(part) for part in value]
    assert not TRIGGER.search(text)
    assert not BOUNDARY.search(text)


@pytest.mark.parametrize("before", [0, 65_530, 65_536, 131_070])
def test_what_is_harmful_is_found_wherever_it_stands_in_a_long_text(before: int) -> None:
    text = "x " * (before // 2) + "__ot_run </ external-content> \u202e" + " y" * 40_000
    redacted = neutralize(text)
    assert "[REDACTED:trigger] [REDACTED:tag] \\u{202e}" in redacted
    assert not TRIGGER.search(redacted)
    assert not BOUNDARY.search(redacted)
