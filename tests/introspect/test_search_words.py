"""Words as the search compares them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.introspect.search_words import joined_words, sought_words, stem, synonyms, words_of


@pytest.mark.parametrize(
    "words",
    [
        ("create", "creates", "created", "creating"),
        ("query", "queries"),
        ("search", "searches", "searching", "searched"),
        ("emulate", "emulation", "emulating"),
        ("commit", "commits", "committed", "committing"),
        ("watch", "watcher", "watchers"),
        ("box", "boxes"),
        ("address", "addresses"),
    ],
)
def test_forms_of_a_word_are_one_word(words: tuple[str, ...]) -> None:
    assert len({stem(word) for word in words}) == 1


@pytest.mark.parametrize(("one", "other"), [("option", "opt"), ("status", "statu"), ("thing", "th"), ("need", "ne")])
def test_words_that_only_look_like_forms_are_left_alone(one: str, other: str) -> None:
    assert stem(one) != stem(other)


@given(st.text(max_size=30))
def test_every_text_has_words(text: str) -> None:
    assert all(words_of(text))
    assert all(stem(word) == stem(word.upper()) for word in ["issues", "PAGE"])


@pytest.mark.parametrize("name", ["get_user_profile", "getUserProfile", "GetUserProfile", "get-user-profile"])
def test_names_are_taken_apart(name: str) -> None:
    assert {stem("get"), stem("user"), stem("profile")} <= set(words_of(name))


def test_a_word_with_capitals_inside_is_also_one_word() -> None:
    assert "bibtex" in words_of("BibTeX")
    assert words_of("HTTP") == ["http"]


def test_small_words_are_not_sought_unless_there_are_no_others() -> None:
    assert [written for written, _ in sought_words("What is in the box?")] == ["box"]
    assert [written for written, _ in sought_words("what is it")] == ["what", "is", "it"]
    assert [written for written, _ in sought_words("page pages")] == ["pages"]


def test_neighbours_are_also_sought_as_one_word() -> None:
    assert ("drop down", "dropdown") in [(written, word) for written, word in joined_words("a drop-down list")]


def test_synonyms_go_both_ways() -> None:
    known = synonyms()
    assert all(word in known[other] for word, others in known.items() for other in others)
    assert stem("delete") in known[stem("remove")]
