"""Arguments are bound to parameters, or refused in Python's own words with the signature."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.errors import InvalidArguments
from ot.execution.arguments import MAX_ARGUMENTS, bind_arguments
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


def test_several_missing_arguments_are_all_named() -> None:
    two = Tool("web", "two", (Parameter("a"), Parameter("b", "keyword")))
    with pytest.raises(InvalidArguments, match="is missing 2 required arguments: 'a', 'b'"):
        bind_arguments(two, (), {})


def test_a_tool_that_takes_anything_gets_it_under_the_names_given() -> None:
    assert bind_arguments(ANYTHING, (1,), {"x": 2, "y": 3}) == {"first": 1, "x": 2, "y": 3}


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
