"""Words as the search compares them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.introspect.search_words import (
    clauses,
    find_words,
    join_words,
    stem,
    synonyms,
    without_arguments,
    words_of,
)


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
        ("write", "wrote", "written", "writing"),
        ("summarize", "summarise", "summary", "summaries"),
        ("color", "colour", "colours", "coloured"),
        ("permission", "permissions", "permit"),
        ("large", "larger", "largest"),
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
    assert [written for written, _ in find_words("What is in the box?")] == ["box"]
    assert [written for written, _ in find_words("what is it")] == ["what", "is", "it"]
    assert [written for written, _ in find_words("page pages")] == ["pages"]


def test_neighbours_are_also_sought_as_one_word() -> None:
    assert ("drop down", "dropdown") in [(written, word) for written, word in join_words("a drop-down list")]


def test_synonyms_go_both_ways() -> None:
    known = synonyms()
    assert all(word in known[other] for word, others in known.items() for other in others)
    assert stem("delete") in known[stem("remove")]


def test_a_phrase_is_sought_by_what_it_means() -> None:
    assert [written for written, _ in find_words("get rid of old pages")] == ["delete", "old", "pages"]
    assert [written for written, _ in find_words("How many pages?")] == ["count", "pages"]


@pytest.mark.parametrize(
    ("query", "without"),
    [
        ("open https://a.example/x?y=1 now", "open url now"),
        ("mail anna@a.example", "mail email address"),
        ("close ABC-12", "close issue ticket"),
        ("sum up sales.csv", "sum up file csv"),
        ("pages about cats in the wiki", "pages in the wiki"),
        ("where is MAX_SIZE used", "where is used"),
        ("use file.read on page 12", "use file.read on page"),
    ],
)
def test_what_a_program_will_give_to_a_tool_is_taken_out(query: str, without: str) -> None:
    assert without_arguments(query).split() == without.split()


def test_an_intent_of_its_own_begins_with_a_verb() -> None:
    assert clauses("stage files, commit and send a letter") == ["stage files", "commit ", " send a letter"]
    assert len(clauses("author, title and date of a document")) == 1


def test_a_word_with_many_synonyms_means_each_of_them_less_likely() -> None:
    known = synonyms()
    few, many = (max(known[stem(word)].values()) for word in ("freeze", "show"))
    assert many < few <= 1.0
