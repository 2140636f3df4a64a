"""YAML as nodes: what is read, what is refused, and on which line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.config.document import MAX_BYTES, Node, parse
from ot.errors import ConfigError
from pace import effort

FILE = Path("onetool.yaml")


def plain(text: str | bytes) -> object:
    return parse(text if isinstance(text, bytes) else text.encode(), FILE).plain()


def refusal(text: str | bytes) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        plain(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-7", -7),
        ("007", 7),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".inf", math.inf),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("no", "no"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        ("1_000", "1_000"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("[1, a, [b]]", [1, "a", ["b"]]),
        ("{a: {b: c}}", {"a": {"b": "c"}}),
    ],
)
def test_a_plain_value_is_what_it_looks_like(text: str, value: object) -> None:
    assert {"key": value} == plain(f"key: {text}\n")


def test_a_number_too_long_for_a_number_is_text() -> None:
    assert plain(f"key: {'9' * 5000}\n") == {"key": "9" * 5000}


def test_keys_are_always_text() -> None:
    assert plain("1: a\ntrue: b\nno: c\n") == {"1": "a", "true": "b", "no": "c"}


def test_a_byte_order_mark_is_skipped() -> None:
    assert plain(b"\xef\xbb\xbfa: 1\n") == {"a": 1}


def test_a_file_of_comments_alone_holds_nothing() -> None:
    assert plain("# nothing\n\n# yet\n") == {}


@pytest.mark.parametrize("text", ["", "\n", "  \n\n"])
def test_an_empty_file_is_refused_because_an_editor_may_be_saving_it(text: str) -> None:
    assert "empty" in str(refusal(text))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb:\n\tc: 2\n", 3, "tab"),
        ("a: 1\nb: 2\na: 3\n", 3, "'a' is given twice, first in line 1"),
        ("a: 1\nb: &x 2\n", 2, "anchors"),
        ("a: 1\nb: *x\n", 2, "anchors"),
        ("a: 1\nb: !!python/object/apply:os.system [id]\n", 2, "tag"),
        ("a: 1\nb: !!str 1\n", 2, "tag"),
        ("a: 1\n--- \nb: 2\n", 2, "second document"),
        ("a: 1\nb: \0\n", 2, r"'\x00'"),
        ("# x\n- a\n", 2, "keys with values"),
        ("just text\n", 1, "keys with values"),
        ("a: 1\n? [b]\n: 2\n", 2, "a key must be text"),
        ("a: 1\nb: [1\n", 3, "not valid YAML"),
        ("%TAG ! x\n---\na: 1\n", 1, "directives"),
        (b"a: 1\nb: \xff\n", 2, "UTF-8"),
        ("a:\n" + " - " + "[" * 40 + "]" * 40, 2, "nested"),
    ],
)
def test_what_no_configuration_needs_is_refused_with_its_line(text: str | bytes, line: int, words: str) -> None:
    error = refusal(text)
    assert (FILE, line) == (error.file, error.line)
    assert words in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 100_000,
        "{a: " * 200_000,
        "- " * 500_000,
        "? " * 500_000,
        "a: [" + "x," * 500_000,
        "".join(f"k{i}: v\n" for i in range(100_000))[:MAX_BYTES],
        "".join(f"%TAG !a{i}! x\n" for i in range(50_000)),
        '"' + "\\" * 1_000_000,
        "a: |\n" + " \n" * 500_000,
        "[[\n" * 300_000,
    ],
    ids=range(10),
)
def test_hostile_text_is_answered_within_a_second(text: str) -> None:
    with effort() as spent:
        try:
            plain(text)
        except ConfigError as error:
            assert error.line
    assert spent.loops < 400


def test_a_file_above_the_size_limit_is_refused() -> None:
    assert f"{MAX_BYTES:,}" in str(refusal(b"a: " + b"x" * MAX_BYTES))


FILLERS = (
    "# note\n",
    "\n",
    "k: v\n",
    "k: 'é😀\u2028\u0085'\n",
    "k: |\n  one\n\n  two\n",
    "k: [1,\n  2]\n",
    "k: {a: 1}\n",
)


@given(st.lists(st.sampled_from(FILLERS), max_size=8), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_every_key_knows_its_line_wherever_it_stands(blocks: list[str], end: str, nested: bool) -> None:
    before = "".join(block.replace("k:", f"k{number}:") for number, block in enumerate(blocks))
    text = before + ("outer:\n  wanted: 1\n" if nested else "wanted: 1\n") + "after: 2\n"
    node = parse(text.replace("\n", end).encode(), FILE)
    path = ("outer", "wanted") if nested else ("wanted",)
    assert before.count("\n") + 1 + nested == node.find(path).place.line


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc_", min_size=1), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text("abcxyz", min_size=1), PLAIN, max_size=4))
def test_json_reads_as_the_same_values(data: dict[str, object]) -> None:
    import json

    assert data == plain(json.dumps(data, ensure_ascii=False))


def test_find_gives_the_nearest_node_that_exists() -> None:
    root: Node = parse(b"a:\n  b: [1, 2]\n", FILE)
    assert root.find(("a", "b", 1)).value == 2
    assert root.find(("a", "b", 9)) == root.find(("a", "b"))
    assert root.find(("a", "zz", "y")) == root.find(("a",))
