"""Twenty servers are configured, five of them are no good: nobody waits for those, and everybody is told why."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from faults.watched import Place
from proxied.desk import fake
from real_servers.real_house import ONETOOL, config_of, house
from server.asked_talk import AskedTalk

pytestmark = pytest.mark.timeout(300)

REAL = ("memory", "filesystem", "time")
FAKES = {f"fake{number}": fake() for number in range(12)}
SHORT = {"start_seconds": 4}
LEAST_TURNS, MOST_TURNS = 4, 12
"""What a busy machine adds is not there each time; waiting for a server is."""


def script(text: str) -> dict[str, Any]:
    """Return the settings of a server that is a few lines of Python."""
    return {"command": sys.executable, "args": ["-c", text], **SHORT}


BAD = {
    "hangs": script("import time; time.sleep(600)"),
    "deaf": script("import sys, time; print('still loading', file=sys.stderr, flush=True); time.sleep(600)"),
    "crashes": script("raise SystemExit('no database at port 5432')"),
    "junk": script("import sys\nfor line in sys.stdin: print('Welcome! ' * 3, flush=True)"),
    "missing": {"command": "no-such-program-anywhere", **SHORT},
}
WORDS = {
    "hangs": "it did not start within 4 s",
    "deaf": "it did not start within 4 s. It said: still loading",
    "crashes": "exit code 1. Its last words: no database at port 5432",
    "junk": "that are not JSON-RPC, such as 'Welcome!",
    "missing": "no-such-program-anywhere",
}


def health(talk: AskedTalk) -> dict[str, Any]:
    return json.loads(talk.call("__format__ = 'json'\not.health()['proxy']").text)


def test_fifteen_of_twenty_servers_work_and_health_says_why_five_do_not(tmp_path: Path) -> None:
    with house(tmp_path, REAL, more=FAKES | BAD, policy={"allow": ["*"]}) as talk:
        assert health(talk)["servers"] == dict.fromkeys([*REAL, *FAKES, *BAD], "disconnected")
        calls = [f"{name}.echo(text='{name}')" for name in FAKES]
        program = f"""
import asyncio
said = await asyncio.gather({", ".join(calls)})
[said, memory.read_graph()["entities"], time.get_current_time(timezone="UTC")["timezone"],
 "Allowed" in str(filesystem.list_allowed_directories())]
"""
        found = json.loads(talk.wire.wait(talk.send(program), 90).text)
        assert found == [list(FAKES), [], "UTC", True]

        # Each is named in a program of its own, all at the same time: none waits for another.
        began = time.monotonic()
        numbers = [talk.send(f"{name}.anything()") for name in BAD]
        for name, number in zip(BAD, numbers, strict=True):
            reply = talk.wire.wait(number, 60)
            assert reply.is_error
            assert WORDS[name] in reply.text
        assert time.monotonic() - began < 30

        told = health(talk)
        assert (told["status"], told["server_count"]) == ("degraded", 20)
        assert {name: told["servers"][name] for name in BAD} == dict.fromkeys(BAD, "disconnected")
        assert {told["servers"][name] for name in (*REAL, *FAKES)} == {"connected"}
        assert set(told["problems"]) == set(BAD)
        for name, words in WORDS.items():
            assert words in told["problems"][name]


def test_a_first_reply_waits_for_none_of_twenty_servers(tmp_path: Path) -> None:
    """Starts in turns; the benchmark has a narrower bar, for a machine that does nothing else."""
    without, twenty = Place.make(tmp_path / "none"), Place.make(tmp_path / "twenty")
    without.config.write_text(config_of({}))
    good = {f"good{number}": fake() for number in range(15)}
    twenty.config.write_text(config_of(good | BAD))
    _seconds_to_first_reply(without)  # The first start of all is slower, and would make any ratio small.
    ratios: list[float] = []
    while len(ratios) < LEAST_TURNS or (min(ratios) >= 1.5 and len(ratios) < MOST_TURNS):
        control = _seconds_to_first_reply(without)
        ratios.append(_seconds_to_first_reply(twenty) / control)
    assert min(ratios) < 1.5, ratios


def _seconds_to_first_reply(place: Place) -> float:
    began = time.monotonic()
    talk = AskedTalk.start(place, "handshake", command=ONETOOL)
    with talk.wire:
        assert talk.call("1 + 1").text == "2"
        taken = time.monotonic() - began
        talk.wire.kill()
    return taken
