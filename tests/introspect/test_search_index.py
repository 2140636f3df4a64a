"""The index: rare words count more, names most, slips are forgiven. Words as the search compares them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ot.introspect import search_index
from ot.introspect.search_index import Field, SearchIndex
from ot.introspect.search_words import (
    clauses,
    find_words,
    join_words,
    stem,
    synonyms,
    without_arguments,
    words_of,
)

DOCUMENTS = {
    "web.fetch": "Get one page of the internet.",
    "web.search": "Find pages on the internet.",
    "mail.send": "Send a letter to somebody.",
    "mail.configuration": "Tell the settings.",
}


def index(documents: dict[str, str] = DOCUMENTS) -> SearchIndex:
    fields = [(Field(name, 8, 2), Field(text, 4, 6)) for name, text in documents.items()]
    return SearchIndex(list(documents), fields)


def found(query: str, documents: dict[str, str] = DOCUMENTS) -> list[str]:
    return [list(documents)[place] for place, _ in index(documents).find(query).hits]


def test_a_name_counts_more_than_a_text() -> None:
    assert found("search", {"a.b": "Search search search.", "a.search": "Look."})[0] == "a.search"


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    documents = {f"a.page{n}": "A page." for n in range(20)} | {"a.x": "A zebra."}
    assert found("page zebra", documents)[0] == "a.x"


def test_a_synonym_counts_less_than_the_word_itself() -> None:
    assert found("remove", {"a.delete": "", "a.remove": ""}) == ["a.remove", "a.delete"]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("config", "mail.configuration"),
        ("serch", "web.search"),
        ("intrnet serch", "web.search"),
        ("sned mial", "mail.send"),
        ("sendMail", "mail.send"),
    ],
)
def test_beginnings_and_slips_are_understood(query: str, first: str) -> None:
    assert found(query)[0] == first


@pytest.mark.parametrize("query", ["créer", "Créer", "müßig", "задача", "löschen", "文件"])
def test_words_with_letters_of_other_languages_are_found_whole(query: str) -> None:
    texts = ["Créer un fichier", "müßig", "Новая задача", "Datei löschen", "文件"]
    index = SearchIndex([f"t.{number}" for number in range(5)], [[Field(text, 5.5, 10)] for text in texts])
    found = index.find(query)
    assert query.casefold() in texts[found.hits[0][0]].casefold()
    assert found.unmatched == ()


@pytest.mark.parametrize("query", ["mergecells", "merge cells", "mergeCells", "merge-cells"])
def test_joined_and_split_words_find_the_same(query: str) -> None:
    documents = {"x.merge_cells": "", "x.merge_request": "", "x.clear_cells": ""}
    assert found(query, documents)[0] == "x.merge_cells"


def test_two_words_are_also_the_synonyms_of_the_one_that_they_make() -> None:
    assert found("spread sheet", {"x.create_workbook": "", "x.create_page": ""})[0] == "x.create_workbook"


def test_what_deletes_comes_after_what_does_not_unless_that_was_asked() -> None:
    documents = {"x.delete_chart": "Chart.", "x.create_chart": "Chart."}
    assert found("chart", documents) == ["x.create_chart", "x.delete_chart"]
    assert found("remove the chart", documents) == ["x.delete_chart", "x.create_chart"]


def test_what_a_search_is_about_counts_less_than_what_is_searched() -> None:
    documents = {"x.read_paper": "", "x.read_machine": ""}
    assert found("machine about paper", documents) == ["x.read_machine", "x.read_paper"]
    assert found("paper about machine", documents) == ["x.read_paper", "x.read_machine"]


def test_each_intent_of_a_query_has_hits_of_its_own() -> None:
    documents = {"git.add": "Stage files.", "git.commit": "Record.", "mail.send": "Send a letter."}
    parts = index(documents).find_each("stage files, commit and send a letter")
    assert [list(documents)[part.hits[0][0]] for part in parts[1:]] == ["git.add", "git.commit", "mail.send"]
    assert len(index(documents).find_each("send a letter")) == 1


def test_words_that_no_document_has_are_named_as_they_were_written() -> None:
    assert index().find("fetch Zebra quokkas").unmatched == ("Zebra", "quokkas")


@given(st.text(max_size=200))
@settings(max_examples=200)
def test_any_query_is_answered_with_scores_that_fall(query: str) -> None:
    hits = index().find(query).hits
    scores = [score for _, score in hits]
    assert scores == sorted(scores, reverse=True)
    assert len({place for place, _ in hits}) == len(hits)


def test_an_index_of_nothing_finds_nothing() -> None:
    assert index({}).find("a page").hits == ()


def test_what_is_found_among_the_best_is_what_would_be_found_among_all(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = {f"p{n}.get_{word}": f"Get a {word}." for n in range(30) for word in ("page", "issue", "file")}
    all_of_them = found("get the issue of p7", documents)
    monkeypatch.setattr(search_index, "CANDIDATES", 20)
    assert found("get the issue of p7", documents)[:1] == all_of_them[:1] == ["p7.get_issue"]


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
def test_names_of_tools_are_taken_apart_into_words_for_the_search(name: str) -> None:
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
