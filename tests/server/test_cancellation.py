"""``notifications/cancelled`` ends the work, not only the reply."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from faults.wire_eras import Talk
from pace import PATIENCE


def beats(file: Path) -> list[float]:
    """Return the moments at which the tool was alive, on the clock that all processes share."""
    return [float(line) for line in file.read_text().split()] if file.exists() else []


def wait_for_beats(talk: Talk, file: Path, count: int) -> None:
    end = time.monotonic() + PATIENCE
    while len(beats(file)) < count:
        assert time.monotonic() < end
        talk.run("slow.wait(seconds=0.01)")


@pytest.mark.parametrize(
    ("program", "tools"),
    [
        ("slow.beat(file={file!r}, seconds=100)", 1),
        ("x = slow.beat\nx(file={file!r}, seconds=100)", 1),
        ("import asyncio\nawait asyncio.gather(*[slow.beat(file={file!r}, seconds=100) for _ in range(5)])", 5),
        (
            "while True:\n    try:\n        slow.beat(file={file!r}, seconds=100)\n    except Exception:\n        pass",
            1,
        ),
    ],
    ids=["one call", "by another name", "five at once", "a program that catches everything"],
)
def test_the_tool_itself_has_stopped_within_half_a_second(talk: Talk, program: str, tools: int, tmp_path: Path) -> None:
    file = tmp_path / "beats"
    number = talk.send_run(program.format(file=str(file)))
    wait_for_beats(talk, file, tools * 2)
    talk.wire.cancel(number)
    talk.run("slow.wait(seconds=0.5)")
    until_then = beats(file)
    talk.run("slow.wait(seconds=0.5)")
    assert until_then == beats(file)
    assert number not in talk.wire.answers


def test_the_program_does_not_go_on_after_its_call_was_cancelled(talk: Talk, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    number = talk.send_run(f"slow.beat(file={str(first)!r}, seconds=0.8)\nslow.beat(file={str(second)!r}, seconds=1)")
    wait_for_beats(talk, first, 2)
    talk.wire.cancel(number)
    talk.run("slow.wait(seconds=1)")
    assert [] == beats(second)


def test_a_thread_cannot_be_stopped_but_its_run_ends_and_its_answer_is_dropped(talk: Talk) -> None:
    number = talk.send_run("slow.block(seconds=1, nonce='late')")
    talk.run("slow.wait(seconds=0.1)")
    running = "ot.health()['engine']['running']"
    before = int(talk.run(running).text)
    talk.wire.cancel(number)
    talk.run("slow.wait(seconds=0.4)")
    assert before - 1 == int(talk.run(running).text)
    talk.run("slow.wait(seconds=1)")
    assert number not in talk.wire.answers
    assert not any(b"late" in line for line in talk.wire.lines)


@pytest.mark.parametrize("id", ["nobody", 10**9, {}, None])
def test_cancelling_what_is_not_there_changes_nothing(talk: Talk, id: object) -> None:
    running = talk.send_run("slow.wait(seconds=0.1, nonce='through')")
    talk.wire.cancel(id)
    assert "through" == talk.wire.wait(running).text


def test_cancelling_what_has_ended_changes_nothing(talk: Talk) -> None:
    number = talk.send_run("1")
    talk.wire.wait(number)
    talk.wire.cancel(number)
    assert "2" == talk.run("2").text
    assert 1 == len(talk.wire.answers[number])
