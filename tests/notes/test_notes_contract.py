"""What holds of notes wherever they are kept, as programs see it through the pack ``memory``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ot.execution.tool_context import ToolContext, use
from ot.files.path_guard import PathGuard
from ot_tools import memory


@pytest.fixture(autouse=True)
def here(tmp_path: Path) -> Iterator[ToolContext]:
    """A user who has no notes, and keeps them in a file."""
    with use(found := ToolContext(PathGuard((tmp_path,)), tmp_path, user_dir=tmp_path / "user")):
        yield found


def written(*texts: str, **more: Any) -> list[int]:
    return [memory.write(text=text, **more)["id"] for text in texts]


def found(query: str, **more: Any) -> list[int]:
    return [hit["id"] for hit in memory.search(query=query, **more)]


@pytest.mark.parametrize("name", memory.__all__)
def test_the_example_of_each_tool_of_notes_does_what_it_says(name: str) -> None:
    written("We deploy on Tuesdays.", tags=["decision"])
    example = textwrap.dedent(getattr(memory, name).__doc__.partition("Example:\n")[2])
    value = eval(example, {"memory": memory})
    shown = {"delete": {"ids": [1]}, "tags": [{"tag": "decision", "notes": 1}]}
    if name in shown:
        assert value == shown[name]
    else:
        assert (value[0] if isinstance(value, list) else value)["id"] == (2 if name == "write" else 1)


def test_a_title_is_the_first_line_of_a_note() -> None:
    assert memory.write(text="12 September", title="Budget ")["text"] == "Budget\n12 September"
    assert len(found("budget")) == 1


def test_notes_with_all_words_win_over_those_with_any() -> None:
    both, one, _ = written("the api deploys on tuesday", "deploys are slow", "lunch")
    assert found("deploying tuesday") == [both]
    assert set(found("deploying zebra tuesday")) == {both, one}
    assert found("zebra") == []


def test_the_note_that_says_most_about_a_word_comes_first() -> None:
    _, best = written("cache " + "and much about other things " * 30, "cache cache")
    hits = memory.search(query="cache")
    assert hits[0]["id"] == best and hits[0]["score"] == 1 > hits[1]["score"] > 0


def test_scores_say_how_much_of_the_query_is_met() -> None:
    written("the api deploys on tuesday", "deploys are slow", "lunch")
    assert [hit["score"] for hit in memory.search(query="api tuesday")] == [1]
    most, least = (hit["score"] for hit in memory.search(query="api tuesday deploys zebra"))
    assert most == 0.75 > least > 0


@pytest.mark.parametrize(
    "query",
    ["café", "CAFE", "foo.bar", "C++", '"retry policy"', "retry_policy", "部署", "🎉", "->", '"unclosed retry'],
    ids=lambda query: ascii(query),
)
def test_what_stands_in_a_note_finds_it(query: str) -> None:
    note, _ = written("At the Café: foo.bar() in C++ -> see retry_policy, or retry policy. 昨天部署失败了 🎉", "other")
    assert found(query) == [note]


@pytest.mark.parametrize(
    "query", ['"部署"', "部署 失败", "失败 昨", "-> 🎉", '"', '部署 "->'], ids=lambda query: ascii(query)
)
def test_several_parts_of_a_text_without_spaces_find_it(query: str) -> None:
    note, _ = written('昨天部署失败了 -> "🎉', "昨天 ->")
    assert found(query) == [note]
    assert found("部署 成功") == []


def test_a_phrase_is_found_only_in_its_order() -> None:
    right, _ = written("the green door", "a door, green")
    assert found('"green door"') == [right]


@pytest.mark.parametrize(
    "query",
    ["AND", "NOT x", "a OR", "NEAR(", "text:x", "^x", "x*", "{a b}:", '"', '""', "(", "x AND (", "a-b", "'", "\\"],
)
def test_what_a_query_language_would_refuse_is_text(query: str) -> None:
    written("x and a or b not near text")
    assert isinstance(memory.search(query=query), list)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).filter(str.strip))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_text_is_a_syntax_error(query: str) -> None:
    if query.replace("\0", " ").strip():
        memory.search(query=query, limit=1)


def test_a_query_of_many_words_is_searched_for() -> None:
    (note,) = written("w499")
    assert found(" ".join(f"w{number}" for number in range(499, 310, -1))) == [note]
    signs = " ".join(map(chr, range(0x2200, 0x23F0)))  # not one of them is a word
    (note,) = written(signs)
    assert found(signs) == [note]


def test_snippets_are_short_and_show_the_match() -> None:
    written("filler " * 5000 + "needle" + " filler" * 1000, "y" * 40_000 + "部署" + "z" * 5000)
    (hit,) = memory.search(query="needle")
    assert "needle" in hit["snippet"] and len(hit["snippet"]) <= 400
    written("x" * 5000 + " thimble " + "z" * 5000, "\x02 " + "short words before a thread")
    (hit,) = memory.search(query="thimble")
    assert "thimble" in hit["snippet"] and len(hit["snippet"]) == 400
    (hit,) = memory.search(query="thread")
    assert hit["snippet"].strip() == "short words before a thread"
    (hit,) = memory.search(query="部署")
    assert "部署" in hit["snippet"] and len(hit["snippet"]) <= 400 and hit["score"] == 1


def test_tags_and_limit_narrow_what_is_found() -> None:
    both = memory.write(text="one word", tags=["a", "b"])["id"]
    first = memory.write(text="one word", tags=["a"])["id"]
    assert found("word", tags=["A", "b"]) == [both]
    assert set(found("word", tags="a")) == {both, first}  # pyright: ignore[reportArgumentType] - as models write it
    assert len(found("word", limit=1)) == 1
    assert memory.tags() == [{"tag": "a", "notes": 2}, {"tag": "b", "notes": 1}]


def test_a_list_shows_the_start_of_each_note() -> None:
    written("x" * 300)
    (listed,) = memory.list()
    assert (listed["start"], listed["chars"]) == ("x" * 200, 300)


def test_an_update_changes_what_it_names_and_the_index_with_it() -> None:
    (note,) = written("old words", tags=["keep"])
    assert memory.update(id=note, text="new words")["tags"] == ["keep"]
    assert found("old") == [] and found("new") == [note]
    assert memory.update(id=note, text="more", append=True)["text"] == "new words\nmore"
    assert memory.update(id=note, tags=[])["text"] == "new words\nmore"
    assert memory.read(id=note)["tags"] == []


def test_all_notes_named_are_deleted_or_none() -> None:
    one, two = written("one note", "two note")
    with pytest.raises(LookupError, match="no note 99"):
        memory.delete(ids=[one, 99])
    assert set(found("note")) == {one, two}
    assert memory.delete(ids=[one, two, one]) == {"ids": [one, two]}
    assert found("note") == [] and memory.tags() == []
    assert written("three") == [3], "an id is never given twice"


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: memory.write(text=" \n"), "text is empty"),
        (lambda: memory.write(text="x", tags=["a"] * 2 + [f"t{n}" for n in range(20)]), "at most 20 tags, got 21"),
        (lambda: memory.write(text="x", tags=["a" * 51]), "1 to 50 visible characters"),
        (lambda: memory.search(query=" "), r"query is empty: memory.list\(\)"),
        (lambda: memory.search(query="x" * 1001), "1,001 characters, more than 1,000"),
        (lambda: memory.search(query="x", limit=0), "limit must be 1 to 1,000, got 0"),
        (lambda: memory.list(since="yesterday"), "since must be a date or time such as '2026-01-31'"),
        (lambda: memory.update(id=1), "nothing to change"),
        (lambda: memory.delete(ids=[]), "1 to 1,000 notes, got 0"),
        (lambda: memory.delete(ids=range(1, 1002)), "1 to 1,000 notes, got 1,001"),
        (lambda: memory.write(text="\ud800"), "an unpaired surrogate"),
        (lambda: memory.write(text="x", scope="team"), "scope must be one of project, user, got 'team'"),  # pyright: ignore[reportArgumentType] - as programs may
    ],
    ids=["no text", "many tags", "a long tag", "no query", "a long query", "no limit", "no date", "no change",
         "no ids", "many ids", "an unpaired surrogate", "another scope"],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_with_the_reason(call: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        call()
