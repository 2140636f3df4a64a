"""The relay: what it tracks of a client's requests, and what it does without a shared server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_wire import HANDSHAKE
from ot.relay.tracking import ASKS, KEPT, LOST, NOT_CALLED, Traffic
from pace import PATIENCE
from shared_bed import ONETOOL, SharedBed, is_alone

INITIALIZE = {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
GREETING = {"id": 0, "result": {"serverInfo": {"name": "onetool", "version": "1"}}}


def _line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"


def _messages(lines: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.splitlines()]


@pytest.fixture
def traffic() -> Traffic:
    """That of a client which has been greeted."""
    traffic = Traffic()
    assert traffic.sent(_line(**INITIALIZE))
    assert traffic.receive(_line(**GREETING)) == _line(**GREETING)
    assert traffic.sent(_line(method="notifications/initialized"))
    return traffic


@pytest.mark.parametrize("identity", [7, "seven", 'a "quoted" é', "x" * 500, 2**70, 1.5])
def test_a_call_that_the_server_left_open_gets_one_error_under_its_own_id(traffic: Traffic, identity: Any) -> None:
    traffic.sent(_line(id=identity, method="tools/call", params={"name": "run"}))
    [said] = _messages(traffic.fail_unrepeatable())
    assert (said["id"], said["error"]["code"]) == (identity, -32000)
    assert "its effect is not known" in said["error"]["message"]
    assert traffic.fail_unrepeatable() == b""


@pytest.mark.parametrize("answer", [{"result": {"x": "y" * 1000}}, {"error": {"code": 1, "message": ""}}])
@pytest.mark.parametrize("identity", [7, "seven", "x" * 500])
def test_what_was_answered_is_not_answered_again(traffic: Traffic, identity: Any, answer: dict[str, Any]) -> None:
    traffic.sent(_line(id=identity, method="tools/call"))
    line = _line(id=identity, **answer)
    assert traffic.receive(line) == line
    assert traffic.fail_unrepeatable() == b""


def test_the_order_of_an_answers_fields_does_not_matter(traffic: Traffic) -> None:
    traffic.sent(_line(id=7, method="tools/call"))
    traffic.receive(b'{"result": {}, "id": 7, "jsonrpc": "2.0"}\n')
    assert traffic.fail_unrepeatable() == b""


def test_a_cancelled_call_is_owed_no_answer(traffic: Traffic) -> None:
    traffic.sent(_line(id=7, method="tools/call"))
    traffic.sent(_line(method="notifications/cancelled", params={"requestId": 7}))
    assert traffic.fail_unrepeatable() == b""


@pytest.mark.parametrize("method", ["ping", "tools/list", "resources/read", "prompts/get", "logging/setLevel"])
def test_what_changes_nothing_is_asked_again(traffic: Traffic, method: str) -> None:
    request = _line(id=7, method=method)
    traffic.sent(request)
    assert traffic.fail_unrepeatable() == b""
    told = traffic.begin_greeting()
    assert [*told, *(line for line in traffic.list_repeatable() if line not in told)].count(request) == 1
    answer = _line(id=7, result={})
    assert traffic.receive(answer) == answer


def test_a_new_server_is_told_who_the_client_is_and_the_client_does_not_notice(traffic: Traffic) -> None:
    traffic.sent(_line(id=1, method="logging/setLevel"))
    traffic.receive(_line(id=1, result={}))
    traffic.fail_unrepeatable()
    methods = [message["method"] for message in _messages(b"".join(traffic.begin_greeting()))]
    assert methods == ["initialize", "notifications/initialized", "logging/setLevel"]
    assert traffic.receive(_line(**GREETING)) == b""
    assert traffic.receive(_line(id=1, result={})) == b""


def test_a_server_of_another_version_makes_the_client_read_the_list_of_tools_again(traffic: Traffic) -> None:
    traffic.fail_unrepeatable()
    traffic.begin_greeting()
    other = _line(id=0, result={"serverInfo": {"name": "onetool", "version": "2"}})
    [said] = _messages(traffic.receive(other))
    assert said["method"] == "notifications/tools/list_changed"
    traffic.fail_unrepeatable()
    traffic.begin_greeting()
    assert traffic.receive(other) == b""


def test_a_client_that_was_not_greeted_yet_gets_one_greeting() -> None:
    traffic = Traffic()
    traffic.sent(_line(**INITIALIZE))
    assert traffic.fail_unrepeatable() == b""
    assert traffic.begin_greeting() == traffic.list_repeatable() == [_line(**INITIALIZE)]
    assert not traffic.is_greeted()
    assert traffic.receive(_line(**GREETING)) == _line(**GREETING)
    assert traffic.is_greeted()


def test_a_new_server_works_once_it_has_answered_the_greeting(traffic: Traffic) -> None:
    assert traffic.is_greeted()
    traffic.fail_unrepeatable()
    traffic.begin_greeting()
    assert not traffic.is_greeted()
    traffic.receive(_line(**GREETING))
    assert traffic.is_greeted()


@pytest.mark.parametrize("method", ["tools/call", "ping"])
def test_what_no_server_takes_gets_one_error_that_says_that_nothing_was_done(traffic: Traffic, method: str) -> None:
    traffic.sent(_line(id=7, method=method))
    [said] = _messages(traffic.give_up('no "module"'))
    assert said["id"] == 7
    assert 'nothing was done: no "module"; the next call tries again' in said["error"]["message"]
    assert (traffic.fail_unrepeatable(), traffic.list_repeatable()) == (b"", [])


def test_what_a_server_keeps_is_for_the_relay_alone(traffic: Traffic) -> None:
    assert traffic.receive(_line(id=KEPT, result={"kept": ["sessions"]})) == b""
    assert traffic.kept == {"kept": ["sessions"]}
    traffic.sent(_line(id=KEPT, method="tools/call"))
    answer = _line(id=KEPT, result={})
    assert traffic.receive(answer) == answer


def test_questions_of_a_server_that_has_gone_are_withdrawn_and_late_answers_dropped(traffic: Traffic) -> None:
    traffic.receive(_line(id="q1", method="elicitation/create", params={}))
    [said] = _messages(traffic.fail_unrepeatable())
    assert (said["method"], said["params"]["requestId"]) == ("notifications/cancelled", "q1")
    assert not traffic.sent(_line(id="q1", result={"action": "accept"}))


def test_an_answer_goes_to_the_server_that_asked_and_only_once(traffic: Traffic) -> None:
    traffic.receive(_line(id=3, method="elicitation/create", params={}))
    assert traffic.sent(_line(id=3, result={"action": "accept"}))
    assert not traffic.sent(_line(id=3, result={"action": "accept"}))


@pytest.mark.parametrize(
    "line",
    [
        b"junk\n",
        b"[]\n",
        b"\xff\n",
        b"{\n",
        b'{"id":{}}\n',
        b'{"id":[],"method":"x"}\n',
        b"[" * 9999 + b"\n",
        b'{"id":}\n',
    ],
)
def test_a_malformed_line_is_for_the_server_to_refuse(traffic: Traffic, line: bytes) -> None:
    assert traffic.sent(line)
    assert traffic.receive(line) == line
    assert traffic.fail_unrepeatable() == b""


def test_an_unusable_id_in_a_cancellation_is_passed_on(traffic: Traffic) -> None:
    assert traffic.sent(_line(method="notifications/cancelled", params={"requestId": []}))


def test_a_call_that_is_cut_off_by_the_end_of_its_server_is_said_to_be_unknown(traffic: Traffic) -> None:
    call = {"id": 7, "method": "tools/call", "params": {"name": "run"}}
    traffic.sent(_line(**call))
    closed = {"code": -32000, "message": "Connection closed"}
    assert b"its effect is not known" in traffic.receive(_line(id=7, error=closed))
    traffic.sent(_line(**call))
    said = _line(id=7, result={"content": [{"type": "text", "message": "Connection closed"}]})
    assert traffic.receive(said) == said


def test_of_a_call_that_waited_for_its_user_the_client_is_told_that_it_was_not_made(traffic: Traffic) -> None:
    for identity in (7, "seven", 9):
        traffic.sent(_line(id=identity, method="tools/call"))
    for identity, tool in ((7, "file.write"), ("seven", "file.write"), (9, "bin.delete"), ("seven", "")):
        told = _line(method=ASKS, params={"requestId": identity, "tool": tool})
        assert b"" == traffic.receive(told)
    cut_off = _line(id=9, error={"code": -32000, "message": "Connection closed"})
    said = {
        one["id"]: one["error"]["message"] for one in _messages(traffic.receive(cut_off) + traffic.fail_unrepeatable())
    }
    assert {
        7: NOT_CALLED % "file.write",
        "seven": LOST,  # it was answered: what came of it is not known
        9: NOT_CALLED % "bin.delete",
    } == said
    traffic.sent(_line(id=7, method="tools/call"))
    assert LOST == _messages(traffic.fail_unrepeatable())[0]["error"]["message"]


FROM_C = {"_json", "_socket", "binascii", "fcntl", "select"}
"""What a relay needs beside what Python imports anyway; each is a library in C."""
MEGABYTE = 1 << 20


def test_a_relay_imports_itself_and_five_libraries(user: SharedBed) -> None:
    command = [sys.executable, "-P", "-c", "from ot.entry import main; main()", "serve", "--shared"]
    env = user.environment(PYTHONPROFILEIMPORTTIME="1")
    done = subprocess.run(
        command, cwd=user.cwd, env=env, stdin=subprocess.PIPE, capture_output=True, text=True, timeout=60, check=True
    )
    after = done.stderr[done.stderr.index("ot.entry") :]
    names = {line.rpartition("|")[2].strip() for line in after.splitlines()[1:]}
    files = ("header", "place", "reach", "relay", "servers", "tracking", "tries")
    ours = {"ot.relay", *(f"ot.relay.{name}" for name in files)}
    assert names == ours | FROM_C, f"beside them: {names - ours - FROM_C}"


def test_a_megabyte_in_each_direction_at_once_blocks_nobody(user: SharedBed) -> None:
    with user.client() as client:
        texts = [letter * (MEGABYTE - 100) for letter in "abcdef"]
        numbers = [client.send_run(f"{text!r}") for text in texts]
        assert [client.wait(number).text for number in numbers] == texts
        assert client.stdout_junk == []
        assert not is_alone(client)


def test_a_line_that_is_too_long_is_refused_by_the_server_and_the_next_is_answered(user: SharedBed) -> None:
    with user.client() as client:
        client.send_raw(b'{"jsonrpc":"2.0","id":900,"method":"ping","params":{"x":"')
        for _ in range(20):
            client.send_raw(b"x" * MEGABYTE)
        client.send_raw(b'"}}\n')
        assert "at most" in client.wait(None).text
        assert client.run("1 + 1").text == "2"


def test_lines_that_end_in_both_ways_and_blank_ones_are_understood(user: SharedBed) -> None:
    with user.client() as client:
        client.send_raw(b'\n\r\n{"jsonrpc":"2.0","id":901,"method":"ping"}\r\n\n{"jsonrpc":"2.0",')
        assert client.wait(901).result == {}
        client.send_raw(b'"id":902,"method":"ping"}\n')
        assert client.wait(902).result == {}


def test_input_that_is_a_file_is_answered_and_the_relay_ends(user: SharedBed, tmp_path: Path) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
    (tmp_path / "input").write_text(json.dumps(request) + "\n")
    with (tmp_path / "input").open("rb") as file:
        done = subprocess.run(
            [ONETOOL, "serve", "--shared"],
            cwd=user.cwd, env=user.environment(), stdin=file, capture_output=True, timeout=PATIENCE, check=True,
        )  # fmt: skip
    assert json.loads(done.stdout)["id"] == 1


def test_each_client_works_in_its_own_directory_with_its_own_environment(user: SharedBed, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "who.txt").write_text(name)
    with user.client(cwd=tmp_path / "one") as one, user.client(OT_CWD=str(tmp_path / "two")) as two:
        read = "file.read(path='who.txt')"
        assert ["one" in one.run(read).text, "two" in two.run(read).text] == [True, True]
        assert user.connections() == 2


def test_clients_behind_the_same_proxy_share_a_server(user: SharedBed) -> None:
    proxy = "http://127.0.0.1:9"
    with user.client(HTTPS_PROXY=proxy) as one, user.client(HTTPS_PROXY=proxy) as two:
        assert [one.run("1 + 1").text, two.run("1 + 1").text] == ["2", "2"]
        assert [is_alone(one), is_alone(two)] == [False, False]
        assert len(user.daemons()) == 2
