"""Programs that want all the time and memory there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bad_inputs.bad_inputs_corpus import Item, each_item, items, text
from faults.watched import BARE, Place, Watched, peak_growth_mb, start_wire
from mcp_wire import WireReply, WireServer

GROWTH_MB = 10.0

VALUES = {
    "run_resource-22": r'\["\[\.\.\.\]"\]',
    "run_resource-23": r'\{"d":"\{\.\.\.\}"\}',
    "run_resource-24": "None",
    "run_resource-25": "None",
    "run_resource-30": "NaN",
    "run_resource-31": "Infinity",
    "run_resource-33": r"<function .*>",
    "run_resource-34": r"\[0,1,2\]",
    "run_resource-35": "/wA=",
    "run_resource-37": r'\{"1":2,"\(1, 2\)":3,"null":4\}',
    "run_resource-38": r'\{"k":\[1,2\]\}',
}
"""Those that are no attack on a server that bounds them, and what they come to; all others are errors."""

FLOOR = ("run_resource-43", "run_resource-44", "run_resource-46", "run_resource-47")
"""Those whose text alone costs bare FastMCP more than the corpus allows: its own figure and a fifth is their bar."""


@each_item("run_resource")
def test_a_hungry_program_is_answered_in_time(server: Watched, item: Item) -> None:
    command = text(item)
    grown: list[float] = []

    def run() -> WireReply:
        replies: list[WireReply] = []
        grown.append(peak_growth_mb(server.wire, lambda: replies.append(answer(server.wire, command))))
        return replies[0]

    reply = server.survive(run)
    if item["id"] in VALUES:
        assert re.fullmatch(VALUES[item["id"]], reply.text)
        assert not reply.is_error
    else:
        assert reply.is_error
    if item["id"] not in FLOOR:
        assert grown[-1] <= GROWTH_MB


def answer(wire: WireServer, command: str) -> WireReply:
    """Return the reply to *command*, also when the message is refused before its id is known."""
    refused = len(wire.answers.get(None, ()))
    number = wire.send_run(command)
    if len(command) < 16 << 20:
        return wire.wait(number)
    wire.ping()
    return wire.answers[None][refused]


@pytest.mark.parametrize("id", FLOOR)
def test_a_long_text_costs_no_more_than_a_fifth_above_bare_fastmcp(id: str, tmp_path: Path) -> None:
    command = next(text(item) for item in items("run_resource") if item["id"] == id)
    place = Place.make(tmp_path)
    with start_wire(place, BARE) as bare:
        bare.run("1")
        floor = peak_growth_mb(bare, lambda: bare.run(command, timeout=60))
    with start_wire(place) as ours:
        ours.run("1")
        growth = peak_growth_mb(ours, lambda: answer(ours, command))
    assert growth <= max(GROWTH_MB, floor * 1.2)
