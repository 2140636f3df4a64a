"""Arguments are bound to parameters, or refused in Python's own words with the signature."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.errors import AmbiguousArgument, InvalidArguments
from ot.execution.annotation_check import may_take
from ot.execution.arguments import MAX_ARGUMENTS, bind_arguments, complete_name, complete_names
from ot.registry.tool import Parameter, Tool

SEARCH = Tool(
    "web",
    "search",
    (Parameter("query"), Parameter("count", default="10"), Parameter("deep", "keyword", default="False")),
)
ANYTHING = Tool("web", "any", (Parameter("first"), Parameter("rest", "kwargs")))


@pytest.mark.parametrize(
    ("args", "kwargs", "bound"),
    [
        ((), {"query": "x"}, {"query": "x"}),
        (("x",), {}, {"query": "x"}),
        (("x", 5), {"deep": True}, {"query": "x", "count": 5, "deep": True}),
        (("x", 5, True), {}, {"query": "x", "count": 5, "deep": True}),
        (("x",), {"c": 5}, {"query": "x", "count": 5}),
        ((), {"q": None}, {"query": None}),
    ],
)
def test_every_argument_gets_its_parameter_s_name(args: Any, kwargs: Any, bound: dict[str, Any]) -> None:
    assert bound == bind_arguments(SEARCH, args, kwargs)


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((), {}, "web.search() is missing 1 required argument: 'query'"),
        (("x",), {"query": "y"}, "web.search() got multiple values for argument 'query'"),
        (("x",), {"q": "y"}, "web.search() got multiple values for argument 'query'"),
        ((1, 2, 3, 4), {}, "web.search() takes 3 arguments but 4 were given"),
        (("x",), {"wrong": 1}, "web.search() got an unexpected keyword argument 'wrong'"),
        (("x",), {"conut": 1}, "web.search() got an unexpected keyword argument 'conut', did you mean 'count'?"),
        (("x",), {"": 1}, "web.search() got an unexpected keyword argument ''"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_signature(args: Any, kwargs: Any, words: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        bind_arguments(SEARCH, args, kwargs)
    assert str(caught.value).startswith(words)
    assert str(caught.value).endswith("Expected: web.search(query, count=10, deep=False)")


def test_everything_that_is_wrong_with_the_names_is_said_at_once() -> None:
    with pytest.raises(InvalidArguments) as caught:
        bind_arguments(SEARCH, (), {"conut": 1, "wrong": 2})
    for words in ("'conut', did you mean 'count'?", "'wrong'", "is missing 1 required argument: 'query'"):
        assert words in str(caught.value)
    assert str(caught.value).count("Expected:") == 1


def test_several_missing_arguments_are_all_named() -> None:
    two = Tool("web", "two", (Parameter("a"), Parameter("b", "keyword")))
    with pytest.raises(InvalidArguments, match="is missing 2 required arguments: 'a', 'b'"):
        bind_arguments(two, (), {})


def test_a_tool_that_takes_anything_gets_it_under_the_names_given() -> None:
    assert bind_arguments(ANYTHING, (1,), {"x": 2, "y": 3}) == {"first": 1, "x": 2, "y": 3}


@pytest.mark.parametrize(
    ("given_names", "bound"),
    [
        ({"per_page": 3}, {"perPage": 3}),
        ({"PERPAGE": 3, "UserId": 1}, {"perPage": 3, "user_id": 1}),
        ({"user-id": 1}, {"user_id": 1}),
    ],
)
def test_a_name_with_the_letters_of_one_parameter_is_that_one_and_a_note_says_so(
    given_names: dict[str, int], bound: dict[str, int]
) -> None:
    notes: list[str] = []
    assert bound == complete_names(given_names, tool("perPage", "user_id", "Id", "ID"), notes.append)
    taken = zip(given_names, bound, strict=True)
    assert notes == [f"{name}= was taken as {full}=" for name, full in taken]


@pytest.mark.parametrize("name", ["id", "i_d", "perPag\u0435", "\u212aey", "_", ""])
def test_a_name_with_the_letters_of_two_parameters_or_of_other_alphabets_is_none_of_them(name: str) -> None:
    parameters = ["perPage", "Id", "ID", "key"]
    assert name == complete_name(name, parameters)


def test_a_tool_that_takes_any_name_is_not_given_another_spelling() -> None:
    assert bind_arguments(ANYTHING, (1,), {"First": 2}) == {"first": 1, "First": 2}


def test_the_only_unknown_name_is_the_only_missing_parameter_where_that_may_take_its_value() -> None:
    notes: list[str] = []
    read = Tool("desk", "read", (Parameter("path", "any", "str"), Parameter("limit", "any", "int", "10")))
    bind = partial(bind_arguments, read, may_be=may_take, note=notes.append)
    assert bind((), {"filename": "a.txt", "limit": 3}) == {"limit": 3, "path": "a.txt"}
    assert notes == ["filename= was taken as path="]
    for kwargs in ({"filename": 3}, {"filename": "a", "encoding": "b"}, {"path": "a", "filename": "b"}):
        with pytest.raises(InvalidArguments, match="unexpected keyword argument 'filename'"):
            bind((), kwargs)
    with pytest.raises(InvalidArguments, match="is missing 1 required argument: 'path'"):
        bind_arguments(read, (), {"filename": "a.txt"})


def test_the_number_of_arguments_is_bounded() -> None:
    many = {f"x{n}": n for n in range(MAX_ARGUMENTS)}
    with pytest.raises(InvalidArguments, match="got 1,001 arguments, at most 1000 are allowed"):
        bind_arguments(ANYTHING, (1,), many)


@given(st.lists(st.integers(), max_size=5), st.dictionaries(st.text(), st.integers(), max_size=5))
def test_any_call_is_bound_or_refused(args: list[int], kwargs: dict[str, int]) -> None:
    try:
        bound = bind_arguments(SEARCH, args, kwargs)
    except InvalidArguments:
        return
    assert "query" in bound
    assert bound.keys() <= {"query", "count", "deep"}
    assert [*args, *kwargs.values()] == list(bound.values())


NAMES = st.text(alphabet="abq_", min_size=1, max_size=4)
SIGNATURES = st.lists(NAMES, min_size=1, unique=True)


def tool(*names: str) -> Tool:
    return Tool("web", "search", tuple(Parameter(name, "keyword") for name in names))


@given(st.lists(st.text(min_size=1), min_size=1, unique=True))
def test_an_exact_name_is_never_changed(parameters: list[str]) -> None:
    assert parameters == [complete_name(name, parameters) for name in parameters]


@given(NAMES, SIGNATURES)
def test_a_name_means_the_first_parameter_that_begins_with_it(name: str, parameters: list[str]) -> None:
    found = complete_name(name, parameters)
    fitting = [parameter for parameter in parameters if parameter.startswith(name)]
    spelled = [parameter for parameter in parameters if parameter.replace("_", "") == name.replace("_", "") != ""]
    if name in parameters or not (fitting or len(spelled) == 1):
        assert name == found
    else:
        assert [*fitting, *spelled][0] == found


@given(NAMES, SIGNATURES)
def test_completing_twice_is_completing_once(name: str, parameters: list[str]) -> None:
    once = complete_name(name, parameters)
    assert once == complete_name(once, parameters)


@given(st.dictionaries(NAMES, st.integers()), SIGNATURES)
def test_no_value_is_lost_and_none_is_overwritten(given_names: dict[str, int], parameters: list[str]) -> None:
    try:
        completed = complete_names(given_names, tool(*parameters))
    except AmbiguousArgument as error:
        first, second = error.given
        assert first != second
        assert complete_name(first, parameters) == complete_name(second, parameters) == error.parameter
    else:
        assert list(given_names.values()) == list(completed.values())


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("query", "query"),
        ("q", "query_info"),
        ("qu", "query_info"),
        ("qual", "quality"),
        ("query_", "query_info"),
        ("xyz", "xyz"),
        ("Q", "Q"),
        ("", ""),
        ("\uff51", "\uff51"),
        ("q ", "q "),
    ],
)
def test_the_words_of_the_specification_hold(name: str, full: str) -> None:
    assert full == complete_name(name, ["query_info", "query", "quality"])


def test_two_names_for_one_parameter_are_refused_with_both() -> None:
    with pytest.raises(AmbiguousArgument) as caught:
        complete_names({"query": 1, "q": 2}, tool("query", "count"))
    assert str(caught.value) == "web.search(): 'query' and 'q' both mean 'query'. Expected: web.search(query, count)"


def test_a_prefix_never_means_what_cannot_be_given_by_name() -> None:
    parameters = (Parameter("query_all", "args"), Parameter("query_one", "positional"), Parameter("query"))
    rest = Parameter("quick", "kwargs")
    assert complete_names({"q": 1, "qui": 2}, Tool("web", "search", (*parameters, rest))) == {"query": 1, "qui": 2}


def test_another_word_for_a_parameter_of_a_bundled_tool_is_that_parameter() -> None:
    notes: list[str] = []
    move = Tool(
        "file", "move", (Parameter("source", "any", "str"), Parameter("target", "any", "str")), destructive=True
    )
    given = {"source": "a", "destination": "b"}
    assert bind_arguments(move, (), given, note=notes.append) == {"source": "a", "target": "b"}
    assert notes == ["destination= was taken as target="]
    for tool, kwargs in (
        (move, {"source": "a", "target": "b", "dst": "c"}),
        (replace(move, source="proxy:file"), given),
        (replace(move, pack="desk"), given),
    ):
        with pytest.raises(InvalidArguments, match="unexpected keyword argument"):
            bind_arguments(tool, (), kwargs)
    with pytest.raises(InvalidArguments, match="unexpected keyword argument"):
        bind_arguments(move, (), given, exact_names=True)
