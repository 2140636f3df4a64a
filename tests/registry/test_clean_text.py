"""Text from outside shows all that it holds, and names become names of Python."""

from __future__ import annotations

import keyword
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.registry.clean_text import clean_line, clean_text, identifier, unique_identifiers


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
