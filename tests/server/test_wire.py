"""Lines on the wire: each request is answered alone, and one that is cancelled stops."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from faults.watched import Place
from faults.wire_eras import ERAS, Talk, start_talk
from ot.server.incoming_line import MAX_PARTS, NoMessage, outer_id, read_line
from ot.server.mcp_server import INSTRUCTIONS
from pace import PATIENCE, times_as_slow, wait_while

pytestmark = pytest.mark.anyio

TOKENS = 800
CHARACTERS_PER_TOKEN = 4


def tools_list(talk: Talk) -> str:
    return json.dumps(talk.request("tools/list").result["tools"], ensure_ascii=False, separators=(",", ":"))


def test_tools_list_and_instructions_cost_at_most_800_tokens_together(talk: Talk) -> None:
    raw = talk.request("tools/list").raw_line.decode()
    assert (len(raw) + len(talk.instructions())) / CHARACTERS_PER_TOKEN <= TOKENS


@pytest.mark.parametrize("era", ERAS)
def test_tools_list_and_instructions_are_the_same_at_every_start_and_in_every_place(era: str, tmp_path: Path) -> None:
    seen: set[tuple[str, str]] = set()
    for name, config in (("a", "version: 1\n"), ("b", "aliases: {ws: brave.search}\nlimits: {run_seconds: 7}\n")):
        talk = start_talk(Place.make(tmp_path / name, config), era)
        with talk.wire:
            seen.add((tools_list(talk), talk.instructions()))
    assert 1 == len(seen)


def test_both_eras_are_told_the_same(talk: Talk) -> None:
    assert INSTRUCTIONS == talk.instructions()
    (tool,) = json.loads(tools_list(talk))
    assert "run" == tool["name"]
    assert "outputSchema" not in tool


@pytest.mark.parametrize(("command", "is_error"), [("{'a': 1}", False), ("1/0", True)])
def test_a_reply_is_text_once_with_an_honest_mark_and_the_engine_s_name(
    talk: Talk, command: str, is_error: bool
) -> None:
    reply = talk.run(command)
    assert is_error == reply.result["isError"]
    assert {"text"} == {block["type"] for block in reply.result["content"]}
    assert "structuredContent" not in reply.result
    assert "portable" == reply.meta["engine"]


def test_who_gives_no_progress_token_hears_no_progress(talk: Talk) -> None:
    before = len(talk.wire.notifications)
    talk.run("slow.wait(seconds=0.1)")
    assert [] == talk.wire.notifications[before:]


NOISES = ["print_()", "raw()", "under()", "child()", "wide()", "stderr(text='aside')", "read_input()"]


@pytest.mark.parametrize("noise", NOISES)
def test_whatever_a_tool_writes_stdout_carries_json_rpc_only(talk: Talk, noise: str) -> None:
    seen = len(talk.wire.lines)
    reply = talk.run(f"noisy.{noise}")
    assert not reply.is_error
    assert "FORGED" not in reply.text
    assert "2" == talk.run("1 + 1").text
    assert [] == talk.wire.stdout_junk
    assert 2 == len(talk.wire.lines) - seen
    assert not any(b"FORGED" in line for line in talk.wire.lines[seen:])


def test_what_tools_write_is_not_lost_but_on_standard_error(talk: Talk) -> None:
    for way in ("print_", "raw", "under", "child"):
        talk.run(f"noisy.{way}(text='heard by {way}')")
        talk.wire.wait_for_stderr(f"heard by {way}")


def test_a_pack_that_writes_while_it_is_imported_reaches_only_standard_error(talk: Talk) -> None:
    assert "hush" == talk.run("loud.whisper()").text
    assert [] == talk.wire.stdout_junk
    assert not any(b"FORGED" in line for line in talk.wire.lines)
    talk.wire.wait_for_stderr("FORGED")


def test_what_a_program_prints_is_in_its_reply_and_nowhere_else(talk: Talk) -> None:
    forged = '{"jsonrpc": "2.0", "id": 1, "result": {}}'
    seen = len(talk.wire.lines)
    assert [forged + "\n", "3"] == talk.run(f"print({forged!r})\n1 + 2").texts
    assert 1 == len(talk.wire.lines) - seen
    assert [] == talk.wire.stdout_junk


def test_a_tool_cannot_take_the_client_s_words(talk: Talk) -> None:
    reader = talk.send_run("noisy.read_input()")
    assert "5" == talk.run("2 + 3").text
    assert "nothing to read" == talk.wire.wait(reader).text


def test_the_log_is_on_standard_error(talk: Talk) -> None:
    talk.wire.wait_for_stderr("serving MCP")


MANY = [0] * (MAX_PARTS + 1)


def line(*members: str, params: Any) -> bytes:
    """Return a request as a line, its members in this order."""
    known: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    return json.dumps({name: known[name] for name in members}).encode()


@pytest.mark.parametrize(
    "members",
    [
        ("jsonrpc", "id", "method", "params"),
        ("id", "jsonrpc", "method", "params"),
        ("method", "params", "jsonrpc", "id"),
        ("method", "params", "id", "jsonrpc"),
    ],
)
async def test_a_message_of_too_many_parts_is_refused_under_its_own_id(members: tuple[str, ...]) -> None:
    found = await read_line(line(*members, params={"command": MANY, "id": 8}), alone=False)
    assert isinstance(found, NoMessage)
    assert (7, "150,000 parts") == (found.request_id, found.reason[-13:])


async def test_who_is_alone_may_send_as_many_parts_as_go_in() -> None:
    found = await read_line(line("jsonrpc", "id", "method", "params", params={"command": MANY}), alone=True)
    assert isinstance(found, types.JSONRPCRequest)


async def test_what_looks_like_parts_in_a_text_counts_as_one() -> None:
    params = {"command": ',[{\\"' * MAX_PARTS}
    found = await read_line(line("jsonrpc", "id", "method", "params", params=params), alone=False)
    assert isinstance(found, types.JSONRPCRequest)
    assert params == found.params


@pytest.mark.parametrize(
    "text",
    [
        b'{"method": "m", "params": {"id": 7}}',
        b'{"method": "m", "params": [{"jsonrpc": "2.0", "id": 7}]}',
        b'{"method": "m", "id": 7.5}',
        b'{"method": "m", "id": null}',
        b'{"method": "m, \\"id\\": 7}',
    ],
)
def test_an_id_that_is_not_the_message_s_own_is_not_taken_for_it(text: bytes) -> None:
    assert outer_id(text) is None


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
    talk.run(f"slow.wait(seconds={0.5 * times_as_slow():.2f})")
    until_then = beats(file)
    talk.run("slow.wait(seconds=0.5)")
    assert until_then == beats(file)
    assert number not in talk.wire.answers


def test_the_program_does_not_go_on_after_its_call_was_cancelled(talk: Talk, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    number = talk.send_run(f"slow.beat(file={str(first)!r}, seconds=100)\nslow.beat(file={str(second)!r}, seconds=1)")
    wait_for_beats(talk, first, 2)
    talk.wire.cancel(number)
    talk.run("slow.wait(seconds=1)")
    assert [] == beats(second)


def test_a_thread_cannot_be_stopped_but_its_run_ends_and_its_answer_is_dropped(talk: Talk) -> None:
    running = "ot.health()['engine']['running']"
    without = int(talk.run(running).text)
    number = talk.send_run("slow.block(seconds=2, nonce='of-the-thread')")
    wait_while(lambda: int(talk.run(running).text) == without)
    talk.wire.cancel(number)
    talk.run("slow.wait(seconds=0.4)")
    assert without == int(talk.run(running).text)
    talk.run("slow.wait(seconds=2)")
    assert number not in talk.wire.answers
    assert not any(b"of-the-thread" in line for line in talk.wire.lines)


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
