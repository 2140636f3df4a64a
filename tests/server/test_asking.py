"""A person is asked in the middle of a run, in both eras, by a real server process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport

from faults.wire_eras import ERAS
from mcp_wire import WireReply
from pace import wait_while
from server.asked_talk import NO, SERVER, YES, AskedTalk, place
from server_process import process_stat

LOOP = "for i in range(50):\n    hub.delete(item=i)\n"
IN_WORKER = "for i in range(50):\n    bin.delete(item=i, log='{log}')\n"
UNCOUNTED = "i = 0\nwhile i < 12:\n    hub.delete(item=i)\n    i += 1\ni\n"
SLOW = "hub.slow(item=1, seconds=20)"
GATHER = """
import asyncio
await asyncio.gather(*[hub.delete(item=i) for i in range(50)])
"""


@pytest.fixture(scope="module", params=ERAS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedTalk]:
    """A conversation with a client that can be asked, once an era."""
    talk = AskedTalk.start(place(tmp_path_factory.mktemp("asking")), request.param)
    with talk.wire:
        yield talk
        assert talk.wire.stdout_junk == []


@pytest.fixture(scope="module")
def modern_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedTalk]:
    """A conversation in the modern era with a server that waits two seconds for an answer."""
    talk = AskedTalk.start(place(tmp_path_factory.mktemp("modern"), "policy: {ask_seconds: 2}\n"), "modern")
    with talk.wire:
        yield talk


@pytest.fixture
def talk(server: AskedTalk) -> AskedTalk:
    """The conversation, nothing deleted and nothing asked yet."""
    return server.anew()


@pytest.fixture
def modern(modern_server: AskedTalk) -> AskedTalk:
    """The conversation in the modern era, nothing deleted and nothing asked yet."""
    return modern_server.anew()


def token_of(reply: WireReply) -> str:
    """Return the token of a reply that says that input is required."""
    assert reply.result.get("resultType") == "input_required", reply.message
    return reply.result["requestState"]


def yes_to(token: str, answer: Any = YES) -> dict[str, Any]:
    """Return what a request brings to answer with yes."""
    return {"requestState": token, "inputResponses": {"answer": dict(answer)}}


# ---------------------------------------------------------------- both eras


@pytest.mark.parametrize("program", [LOOP, IN_WORKER, GATHER], ids=["proxied", "worker", "gather"])
def test_a_loop_of_fifty_deletions_asks_once_for_all_of_them(talk: AskedTalk, program: str) -> None:
    reply = talk.run(program.replace("{log}", str(talk.where.cwd / "deleted.txt")), YES)
    assert not reply.is_error
    assert sorted(talk.deleted) == list(range(50))
    (question,) = talk.questions
    assert ": a program wants to call it.\n" in question["message"]
    assert "up to 50 times" in question["message"]
    assert question["message"].endswith("A yes allows all 50, or as many as you say.")
    assert list(question["requestedSchema"]["properties"]) == ["decision", "up_to"]
    assert question["requestedSchema"]["properties"]["up_to"]["default"] == 50
    if program == GATHER:
        assert "50 calls of it are waiting for the answer" in question["message"]


def test_a_loop_of_unknown_length_asks_again_where_a_yes_is_used_up(talk: AskedTalk) -> None:
    assert talk.run(UNCOUNTED, YES, YES).text == "12"
    assert talk.deleted == list(range(12))
    first, second = talk.questions
    assert first["requestedSchema"]["properties"]["up_to"]["default"] == 10
    assert "10 calls of it have been made in this run." in second["message"]


def test_a_no_is_a_no_and_a_read_only_tool_is_not_asked_about(talk: AskedTalk) -> None:
    assert talk.run("hub.look()").text == "seen"
    assert "PermissionError: hub.delete was not called: the user said no" in talk.run("hub.delete(item=1)", NO).text
    assert talk.deleted == []


def test_several_questions_come_one_after_the_other_and_nothing_is_done_twice(talk: AskedTalk) -> None:
    log = talk.where.cwd / "deleted.txt"
    program = f"hub.delete(item=1)\nbin.delete(item=2, log='{log}')\nhub.delete(item=3)\nhub.slow(item=4, seconds=0)\n"
    assert talk.run(program, YES, YES, YES).text == "-4"
    assert talk.deleted == [1, 2, 3, 4, -4]
    assert [question["message"].split()[0] for question in talk.questions] == ["hub.delete", "bin.delete,", "hub.slow"]


def test_always_is_told_to_who_writes_it_down(talk: AskedTalk) -> None:
    reply = talk.run(LOOP, {"action": "accept", "content": {"decision": "always"}})
    assert not reply.is_error
    assert len(talk.deleted) == 50
    assert (talk.where.cwd / "always.txt").read_text() == "hub.delete"


@pytest.mark.parametrize(
    ("era", "capabilities"), [("handshake", {}), ("handshake", {"elicitation": {"url": {}}}), ("modern", {"roots": {}})]
)
def test_a_client_that_cannot_ask_gets_the_line_that_would_allow_it(
    tmp_path: Path, era: str, capabilities: dict[str, Any]
) -> None:
    talk = AskedTalk.start(place(tmp_path), era, capabilities)
    with talk.wire:
        text = talk.call("hub.delete(item=1)").text
        assert "it offers no elicitation" in text
        line = 'policy: {allow: ["hub.delete"]}'
        assert line in text
        assert talk.deleted == []
        talk.where.config.write_text(line + "\n")
        assert talk.call("hub.delete(item=1)").text == "1"


def test_the_runs_clock_stands_still_while_the_question_waits(tmp_path: Path) -> None:
    config = "limits: {run_seconds: 1, call_seconds: 1, cpu_seconds: 1}\n"
    talk = AskedTalk.start(place(tmp_path, config), "modern")
    with talk.wire:
        talk.call("1")  # the engine's own start takes no time of the run
        token = token_of(talk.call("hub.delete(item=1)"))
        time.sleep(1.5)
        assert talk.call("hub.delete(item=1)", **yes_to(token)).text == "1"


@pytest.mark.parametrize("server", ["handshake"], indirect=True)
def test_a_run_that_is_cancelled_while_it_asks_is_over(talk: AskedTalk) -> None:
    asked_before = len(talk.requests)
    number = talk.send(LOOP)
    asked = talk.question(asked_before)
    talk.wire.cancel(number)
    assert talk.call("1 + 1").text == "2"
    talk.answer(asked["id"], YES)
    assert talk.call("2 + 2").text == "4"
    assert talk.deleted == []


@pytest.mark.parametrize("server", ["handshake"], indirect=True)
@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"action": "maybe"}},
        {"result": {"action": "accept", "content": {"decision": {"allow": True}}}},
        {"result": {"action": "accept", "content": ["allow"]}},
        {"result": {"action": "accept"}},
        {"result": {}},
        {"error": {"code": -32601, "message": "allow"}},
    ],
)
def test_an_answer_that_cannot_be_read_is_no_consent(talk: AskedTalk, answer: dict[str, Any]) -> None:
    asked_before = len(talk.requests)
    number = talk.send("try:\n    hub.delete(item=1)\nexcept PermissionError as e:\n    x = str(e)\nx")
    talk.reply({"id": talk.question(asked_before)["id"], **answer})
    assert talk.wire.wait(number).text.startswith("hub.delete was not called: ")
    assert talk.deleted == []


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_library_client_puts_the_question_to_its_handler(tmp_path: Path, mode: Any) -> None:
    where, seen = place(tmp_path), list[str]()

    async def handler(message: str, response_type: Any, params: Any, context: Any) -> ElicitResult[dict[str, Any]]:
        seen.append(message)
        return ElicitResult(action="accept", content={"decision": "allow", "up_to": 7})

    transport = StdioTransport(SERVER[0], [SERVER[1]], env=where.environment(), cwd=str(where.cwd), keep_alive=False)
    async with Client(transport, mode=mode, elicitation_handler=handler) as client:
        result = await client.call_tool("run", {"command": LOOP}, raise_on_error=False)
    assert result.is_error
    assert "the user allowed 7 calls" in result.content[0].text  # pyright: ignore[reportAttributeAccessIssue] - a text
    assert len(seen) == 1
    assert (where.cwd / "deleted.txt").read_text().split() == [str(number) for number in range(7)]


# ---------------------------------------------------------------- parked runs


def test_a_parked_run_stays_alive_and_is_not_run_again(modern: AskedTalk) -> None:
    program = "import random\nx = random.random()\nprint(x)\nhub.delete(item=1)\nx"
    token = token_of(modern.call(program))
    assert modern.call("1").text == "1"  # others are served meanwhile
    printed, value = modern.call(program, **yes_to(token)).texts
    assert printed.strip() == value
    assert modern.deleted == [1]


def test_a_token_is_good_once(modern: AskedTalk) -> None:
    token = token_of(modern.call("hub.delete(item=1)"))
    assert modern.call("hub.delete(item=1)", **yes_to(token)).text == "1"
    again = modern.call("hub.delete(item=1)", **yes_to(token))
    assert again.is_error
    assert "no run waits for this answer" in again.text
    assert modern.deleted == [1]


def test_a_run_whose_question_nobody_answers_is_ended_and_its_token_void(modern: AskedTalk) -> None:
    program = "try:\n    hub.delete(item=1)\nexcept PermissionError:\n    pass\nbin.delete(item=2, log='deleted.txt')"
    token = token_of(modern.call(program))
    modern.wire.wait_for_stderr("nobody answered the question of a run in time")
    late = modern.call(program, **yes_to(token))
    assert late.is_error
    assert "no run waits for this answer" in late.text
    assert modern.deleted == []


@pytest.mark.parametrize("token", ["", "nonsense", "v1.AAAA", "x" * 43, 17, ["a"], {"a": 1}])
def test_a_token_that_was_never_given_out_is_an_error(modern: AskedTalk, token: Any) -> None:
    token_of(modern.call("hub.delete(item=1)"))
    assert modern.call("hub.delete(item=1)", **yes_to(token)).error["code"] == -32602
    assert modern.deleted == []


def test_an_answer_without_a_token_begins_a_run_of_its_own(modern: AskedTalk) -> None:
    reply = modern.call("hub.delete(item=1)", inputResponses={"answer": dict(YES)})
    token_of(reply)
    assert modern.deleted == []


def test_a_token_goes_with_its_program(modern: AskedTalk) -> None:
    token = token_of(modern.call("hub.delete(item=1)"))
    assert modern.call("hub.delete(item=2)", **yes_to(token)).error["code"] == -32602
    assert modern.deleted == []
    assert modern.call("hub.delete(item=1)", **yes_to(token)).text == "1"


@pytest.mark.parametrize(
    "responses", [{}, {"other": dict(YES)}, {"answer": {"roots": []}}, {"answer": {"action": "cancel"}}]
)
def test_an_answer_that_is_none_counts_as_no(modern: AskedTalk, responses: dict[str, Any]) -> None:
    token = token_of(modern.call("hub.delete(item=1)"))
    reply = modern.call("hub.delete(item=1)", requestState=token, inputResponses=responses)
    assert "the user said no" in reply.text
    assert modern.deleted == []


@pytest.mark.parametrize(
    "responses",
    ["yes", [YES], {"answer": {"action": "maybe"}}, {"answer": {"action": "accept", "content": {"decision": {}}}}],
)
def test_an_answer_that_cannot_be_read_leaves_the_run_waiting_or_is_a_no(modern: AskedTalk, responses: Any) -> None:
    token = token_of(modern.call("hub.delete(item=1)"))
    reply = modern.call("hub.delete(item=1)", requestState=token, inputResponses=responses)
    assert reply.is_error
    assert modern.deleted == []
    if reply.error:
        assert modern.call("hub.delete(item=1)", **yes_to(token)).text == "1"


def test_parked_runs_are_bounded_and_the_next_is_told(tmp_path: Path) -> None:
    talk = AskedTalk.start(place(tmp_path), "modern")
    with talk.wire:
        numbers = [talk.send("hub.delete(item=1)") for _ in range(33)]
        replies = [talk.wire.wait(number) for number in numbers]
        refused = [reply for reply in replies if reply.result.get("resultType") != "input_required"]
        assert len(refused) == 1
        assert "32 other runs are waiting for an answer already" in refused[0].text
        token = token_of(next(reply for reply in replies if reply not in refused))
        assert talk.call("hub.delete(item=1)", **yes_to(token)).text == "1"
        assert talk.call("1").text == "1"


def test_a_run_that_goes_on_after_its_answer_can_be_cancelled(modern: AskedTalk) -> None:
    number = modern.send(SLOW, **yes_to(token_of(modern.call(SLOW))))
    wait_while(lambda: not modern.deleted)
    modern.wire.cancel(number)
    assert modern.call("1").text == "1"
    assert modern.deleted == [1]


def test_the_server_ends_by_itself_with_runs_parked(tmp_path: Path) -> None:
    modern = AskedTalk.start(place(tmp_path), "modern")
    for _ in range(3):
        token_of(modern.call("hub.delete(item=1)"))
    children = modern.wire.children()
    assert children
    assert modern.wire.close() == 0  # by itself; close() kills after ten seconds
    assert [pid for pid in children if process_stat(pid)] == []
    assert modern.deleted == []
