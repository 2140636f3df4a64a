"""Names of arguments that fit several parameters, or none."""

from __future__ import annotations

import json

from bad_inputs.bad_inputs_corpus import Item, each_item
from faults.watched import Watched

BOTH = "both mean"

ARRIVES: dict[str, dict[str, int] | str] = {
    "param_prefix-01": {"query_info": 1},
    "param_prefix-02": {"query": 1},
    "param_prefix-03": {"quality": 1},
    "param_prefix-04": {"query_info": 1, "query": 2},
    "param_prefix-05": BOTH,
    "param_prefix-06": {"": 1},
    "param_prefix-07": {"xyz": 1},
    "param_prefix-08": {"Q": 1},
    "param_prefix-09": {"self": 1},
    "param_prefix-10": {"__class__": 1},
    "param_prefix-11": {"\uff51": 1},
}
"""Under which names the arguments reach a function that takes any other name too."""
PARAMETERS = ("query_info", "query", "quality")


@each_item("param_prefix")
def test_an_argument_reaches_the_parameter_that_it_means(server: Watched, item: Item) -> None:
    reply = server.run(f"prefix.fn(**{item['kwargs']!r})")
    expected = ARRIVES[item["id"]]
    if isinstance(expected, str):
        assert reply.is_error
        assert expected in reply.text
    else:
        assert expected == json.loads(reply.text)


@each_item("param_prefix")
def test_a_function_without_other_names_refuses_them_in_its_own_words(server: Watched, item: Item) -> None:
    reply = server.run(f"prefix.strict(**{item['kwargs']!r})")
    expected = ARRIVES[item["id"]]
    if isinstance(expected, dict) and set(expected) <= set(PARAMETERS):
        assert expected == json.loads(reply.text)
    else:
        assert reply.is_error
        assert "TypeError" in reply.text
        assert "prefix.strict(query_info: Any = None" in reply.text
