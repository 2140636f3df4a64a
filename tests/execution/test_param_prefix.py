"""Abbreviated parameter names are written out in full, exact ones stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.errors import AmbiguousArgument
from ot.execution.param_prefix import complete_name, complete_names
from ot.registry.tool import Parameter, Tool

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
    if name in parameters or not fitting:
        assert name == found
    else:
        assert fitting[0] == found


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
