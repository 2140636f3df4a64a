"""What crosses the wire of a real server process: as little as there must be, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from faults.watched import Place
from faults.wire_eras import ERAS, Talk, start_talk
from ot.server.mcp_server import INSTRUCTIONS

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
        assert f"heard by {way}" in talk.wire.stderr_text()


def test_a_pack_that_writes_while_it_is_imported_reaches_only_standard_error(talk: Talk) -> None:
    assert "hush" == talk.run("loud.whisper()").text
    assert [] == talk.wire.stdout_junk
    assert not any(b"FORGED" in line for line in talk.wire.lines)
    assert "FORGED" in talk.wire.stderr_text()


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
