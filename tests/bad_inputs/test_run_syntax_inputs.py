"""Texts that are hardly programs: a clean error with the model's own line, or a documented value."""

from __future__ import annotations

import pytest

from bad_inputs.bad_inputs_corpus import Item, each_item, items, text
from faults.watched import Watched
from mcp_wire import WireReply

NOTHING = ["OK: the program ran and returned no value"]

VALUES: dict[str, list[str]] = {
    **{f"run_syntax-{n:02}": NOTHING for n in (1, 2, 3, 4, 5, 17, 18, 22)},
    **{f"run_syntax-{n:02}": ["1"] for n in (8, 9, 10, 12, 13, 14, 16, 21, 23, 26, 27, 32, 42, 43, 44, 45)},
    **{f"run_syntax-{n:02}": ["None"] for n in (19, 20, 36)},
    "run_syntax-11": ["```"],
    "run_syntax-24": ["\nmulti\n"],
    "run_syntax-25": ["\n"],
    "run_syntax-28": ["[1,2]"],
    "run_syntax-35": ["a\nb\n"],
    "run_syntax-40": ["2"],
    "run_syntax-49": ["<pack>"],
    "run_syntax-51": ["<tool brave.search>"],
}
OF_OURS = ("Traceback", 'File "', "/ot/", "site-packages", "pydantic")


def assert_clean(reply: WireReply) -> None:
    assert [] == [sign for sign in OF_OURS if sign in reply.text]
    assert len(reply.text) < 2000


@each_item("run_syntax")
def test_a_text_is_a_program_or_a_clean_error(server: Watched, item: Item) -> None:
    reply = server.run(text(item))
    if item["id"] in VALUES:
        assert (False, VALUES[item["id"]]) == (reply.is_error, reply.texts)
    else:
        assert reply.is_error
        assert "line 1" in reply.text
    assert_clean(reply)


MEANT_FOR_THE_START = ("`", "text before", "!onetool")
"""Fences and prefixes mean something at the start of a command only."""

ERRORS = [
    pytest.param(item, id=item["id"])
    for item in items("run_syntax")
    if item["id"] not in VALUES and not text(item).startswith(MEANT_FOR_THE_START)
]


@pytest.mark.parametrize("wrapping", ["\n\n{}", "x = 1\n\n{}", "```python\nx = 1\n\n{}\n```", "    x = 1\n\n    {}"])
@pytest.mark.parametrize("item", ERRORS)
def test_an_error_further_down_names_the_line_that_the_model_wrote(server: Watched, item: Item, wrapping: str) -> None:
    reply = server.wire.run(wrapping.format(text(item)))
    assert reply.is_error
    assert "line 3" in reply.text
    assert_clean(reply)
