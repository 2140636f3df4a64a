"""Texts of others: without what deceives models, terminals and readers of names."""

from __future__ import annotations

import json
import keyword
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.registry.clean_text import clean_line, clean_text, identifier, unique_identifiers
from ot.visible_text import printable, quote, visible, visible_json


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain", "plain"),
        ("a\u202eb\u2066c", "abc"),
        ("a\u200bb\ufeffc", "abc"),
        ("a\U000e0041\U000e0042b", "ab"),
        ("a\ufe0f\U000e0100b", "ab"),
        ("a\x1b[31mb\x07", "a[31mb"),
        ("two\r\nlines\tand", "two\nlines\tand"),
        ("schöne 日本語 🙂", "schöne 日本語 🙂"),
        (None, ""),
        (3, ""),
    ],
)
def test_what_cannot_be_seen_is_gone(text: object, clean: str) -> None:
    assert clean_text(text, 100) == clean


@given(st.text(max_size=60))
def test_no_hidden_character_is_left(text: str) -> None:
    left = {unicodedata.category(mark) for mark in clean_text(text, 50) if mark not in "\n\t"}
    assert left.isdisjoint({"Cc", "Cf", "Cs", "Co", "Cn"})
    assert len(clean_text(text, 50)) <= 50


def test_a_line_is_one_line() -> None:
    assert clean_line("a\n  b\tc ", 10) == "a b c"


@pytest.mark.parametrize(
    ("name", "python"),
    [
        ("query", "query"),
        ("max-results", "max_results"),
        ("from", "from_"),
        ("class", "class_"),
        ("2fa", "_2fa"),
        ("a.b/c", "a_b_c"),
        ("größe", "größe"),
        ("", "_"),
        ("ﬁle", "file"),
        ("se\u200barch", "search"),
    ],
)
def test_a_name_becomes_the_python_name_most_like_it(name: str, python: str) -> None:
    assert identifier(name) == python


@given(st.lists(st.text(max_size=8), max_size=8))
def test_names_are_names_of_python_and_no_two_are_the_same(names: list[str]) -> None:
    given_names = unique_identifiers(names)
    assert set(given_names) == set(names)
    assert len(set(given_names.values())) == len(set(names))
    for name in given_names.values():
        assert name.isidentifier()
        assert not keyword.iskeyword(name)


def test_a_name_that_is_one_already_keeps_it_whatever_comes_first() -> None:
    assert unique_identifiers(["a-b", "a_b", "a.b"]) == {"a-b": "a_b_2", "a_b": "a_b", "a.b": "a_b_3"}


any_text = st.text(st.characters(exclude_categories=())) | st.text("\x1b\x9b]52;c\x07\n\t\r\u202e\u2066\u2028\ud800a")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 日本\n\ttext", "plain ü 日本\n\ttext"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x1b]52;c;Zm9v\x07", "\\x1b]52;c;Zm9v\\x07"),
        ("\x9b31m\x90", "\\x9b31m\\x90"),
        ("a\rb", "a\\rb"),
        ("\u202egnp.exe\u2066\u200f", "\\u202egnp.exe\\u2066\\u200f"),
        ("\udc80", "\\udc80"),
        ("👨\u200d👩\u200d👧 ❤\ufe0f", "👨\u200d👩\u200d👧 ❤\ufe0f"),
    ],
)
def test_what_steers_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(any_text)
def test_nothing_is_left_that_steers_or_cannot_be_encoded(text: str) -> None:
    for shown in (visible(text), printable(text), quote(text)):
        shown.encode()
        assert all(unicodedata.category(mark) not in ("Cc", "Cs", "Zl", "Zp") or mark in "\n\t" for mark in shown)
        assert not any(unicodedata.bidirectional(mark) in ("RLO", "LRO", "RLI", "LRI", "FSI", "PDF") for mark in shown)
    assert "\n" not in printable(text) + quote(text)


@given(any_text)
def test_json_stays_the_same_json(text: str) -> None:
    given = json.dumps({text: [text]}, ensure_ascii=False)
    assert json.loads(visible_json(given)) == {text: [text]}
    assert visible(visible_json(given)) == visible_json(given)
