"""What a forked child sends is data, or malformed: whatever it holds, nothing large is looked at for long."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ot.errors import DataTooLarge, UnknownPack, UnknownTool
from ot.nearest_names import MAX_NAME, did_you_mean, listing
from ot.runtime.engines.forked.messages import read_notice, read_request
from ot.values.parts import Unread

PARTS = 1000
LONG = "r" * (MAX_NAME + 1)


def _request(**changed: Any) -> bytes:
    return json.dumps({"t": "call", "p": "file", "f": "read", "a": [], "k": [], "w": [], **changed}).encode()


@pytest.mark.parametrize("changed", [{"p": LONG}, {"f": LONG}, {"t": "member", "f": LONG}, {"k": [LONG], "w": [1]}])
def test_a_name_of_more_than_200_characters_is_malformed(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"names no tool|no such request"):
        read_request(_request(**changed), PARTS)


def test_a_name_of_200_characters_is_read() -> None:
    name = "r" * MAX_NAME
    assert read_request(_request(p=name, f=name, k=[name], w=[1]), PARTS) == (name, name, [], {name: 1}, None)


@pytest.mark.parametrize(("said", "line"), [(3, 3), (0, None), (-1, None), (10**9, None), ("3", None), (True, None)])
def test_a_line_is_a_number_that_a_program_can_have(said: Any, line: int | None) -> None:
    assert line == read_request(_request(l=said), PARTS).line


def test_an_error_shows_and_compares_the_beginning_of_a_long_name() -> None:
    wanted, names = "r" * 1_000_000, [f"tool_{n}" for n in range(50)]
    assert len(str(UnknownPack(wanted, names))) < 1000
    assert len(str(UnknownTool(wanted, wanted, names))) < 1000
    assert did_you_mean(LONG, ["r" * MAX_NAME]) == "r" * MAX_NAME
    assert "and 30 more" in listing(wanted, names)


def test_arguments_of_too_many_parts_are_refused_unread() -> None:
    assert read_request(_request(a=[[0] * 900]), PARTS).args == [[0] * 900]
    with pytest.raises(DataTooLarge, match=r"more than 1,000 parts \(limits.value_parts\)"):
        read_request(_request(a=[[0] * 1100]), PARTS)


def test_a_value_of_too_many_parts_stays_bytes() -> None:
    ending = {"magic": {"format": "yml"}, "t": "end", "dropped": 0}
    few, many = [[0] * 900], [[0] * 1100]
    assert read_notice(_written({"v": few, **ending}), PARTS) == ({"v": few, **ending}, few)
    assert read_notice(_written({"v": many, **ending}), PARTS) == (ending, Unread(_written(many)))


@pytest.mark.parametrize(
    "message",
    [
        {"t": "end", "v": [0] * 1100, "magic": {}},
        {"t": "print", "o": [0] * 1100},
        {"t": "end", "error": [[0] * 1100, "x", 1]},
    ],
)
def test_a_message_that_is_large_elsewhere_is_malformed(message: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="too many parts"):
        read_notice(_written(message), PARTS)


def _written(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()
