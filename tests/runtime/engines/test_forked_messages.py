"""What a forked child sends is data, or malformed: whatever it holds, nothing large is looked at for long."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ot.errors import MAX_NAME, UnknownPack, UnknownTool, did_you_mean, listing
from ot.runtime.engines.forked_messages import read_request

LONG = "r" * (MAX_NAME + 1)


def _request(**changed: Any) -> bytes:
    return json.dumps({"t": "call", "p": "file", "f": "read", "a": [], "k": [], "w": [], **changed}).encode()


@pytest.mark.parametrize("changed", [{"p": LONG}, {"f": LONG}, {"t": "member", "f": LONG}, {"k": [LONG], "w": [1]}])
def test_a_name_of_more_than_200_characters_is_malformed(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"names no tool|no such request"):
        read_request(_request(**changed))


def test_a_name_of_200_characters_is_read() -> None:
    name = "r" * MAX_NAME
    assert read_request(_request(p=name, f=name, k=[name], w=[1])) == (name, name, [], {name: 1})


def test_an_error_shows_and_compares_the_beginning_of_a_long_name() -> None:
    wanted, names = "r" * 1_000_000, [f"tool_{n}" for n in range(50)]
    assert len(str(UnknownPack(wanted, names))) < 1000
    assert len(str(UnknownTool(wanted, wanted, names))) < 1000
    assert did_you_mean(LONG, ["r" * MAX_NAME]) == "r" * MAX_NAME
    assert "and 30 more" in listing(wanted, names)
