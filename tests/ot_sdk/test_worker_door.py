"""What a pack says to the server: calls of other tools, log lines, progress."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from worker_client import Failed, WorkerClient

from ot_sdk import tagged, wire
from pace import PATIENCE


@pytest.fixture(params=["plain", "mixed"])
def asking(request: pytest.FixtureRequest) -> WorkerClient:
    """A worker whose tool ``ask`` calls another tool: once a plain one, once an async one."""
    return request.getfixturevalue(request.param)


def test_a_tool_gets_the_value_of_another_tool(asking: WorkerClient) -> None:
    asked: list[Any] = []

    def answer(params: dict[str, Any]) -> Any:
        asked.append(params)
        return (1, {"answer": b"bytes"})

    asking.on_call_tool = answer
    pending = asking.begin("ask", tool="web.fetch", arguments={"url": "u", "tool": ("t",)})
    assert (1, {"answer": b"bytes"}) == pending.value()
    arguments = {"url": "u", "tool": {"$ot": "tuple", "v": ["t"]}}
    assert [{"tool": "web.fetch", "arguments": arguments, "call": pending.id}] == asked


def test_a_tool_that_fails_there_raises_here(plain: WorkerClient, mixed: WorkerClient) -> None:
    def answer(params: dict[str, Any]) -> Any:
        raise PermissionError("denied by the policy")

    plain.on_call_tool = mixed.on_call_tool = answer
    assert ["PermissionError", "denied by the policy"] == plain.call("ask_carefully", tool="file.write")
    with pytest.raises(Failed, match="PermissionError: denied by the policy") as caught:
        mixed.call("ask", tool="file.write", arguments={})
    assert "ToolCallFailed" == caught.value.kind


def test_many_calls_at_once_get_their_own_answers(asking: WorkerClient) -> None:
    asking.on_call_tool = lambda params: params["arguments"]["nonce"]
    calls = [asking.begin("ask", tool="a.b", arguments={"nonce": number}) for number in range(40)]
    assert list(range(40)) == [pending.value() for pending in calls]


def test_a_tool_that_waits_for_another_can_be_cancelled(asking: WorkerClient) -> None:
    arrived, release = threading.Event(), threading.Event()

    def answer(params: dict[str, Any]) -> str:
        arrived.set()
        release.wait(PATIENCE)
        return "too late"

    asking.on_call_tool = answer
    pending = asking.begin("ask", tool="slow.tool", arguments={})
    assert arrived.wait(PATIENCE)
    asking.cancel(pending)
    with pytest.raises(Failed) as caught:
        pending.value()
    assert wire.CANCELLED == caught.value.code
    release.set()
    assert "alive" == asking.call("echo", value="alive")


def test_a_tool_does_not_wait_for_another_beyond_its_own_time(asking: WorkerClient) -> None:
    release = threading.Event()
    asking.on_call_tool = lambda params: release.wait(PATIENCE)
    with pytest.raises(Failed, match="did not answer") as caught:
        asking.begin("ask", ms=100, tool="slow.tool", arguments={}).value()
    assert caught.value.kind in ("ToolCallFailed", "ToolTimeout")
    release.set()


def test_blocking_the_event_loop_is_refused(mixed: WorkerClient) -> None:
    with pytest.raises(Failed, match=r"await ot_sdk\.acall_tool"):
        mixed.call("ask_wrongly")


def test_arguments_that_cannot_cross_fail_where_they_are_given(plain: WorkerClient) -> None:
    plain.on_call_tool = lambda params: "never"
    with pytest.raises(Failed, match="too large, at most 16,777,216 can be sent") as caught:
        plain.call("ask_much", size=wire.MAX_FRAME)
    assert "FrameTooLarge" == caught.value.kind
    with pytest.raises(Failed, match=r"value\['lock'\]: lock is not plain data"):
        plain.call("ask_odd")
    assert "alive" == plain.call("echo", value="alive")


def test_log_lines_and_progress_carry_the_id_of_their_call(plain: WorkerClient) -> None:
    pending = plain.begin("report")
    assert "reported" == pending.value()
    logged = plain.wait_for_note("log")
    assert {
        "id": pending.id,
        "level": "debug",
        "message": "started",
        "fields": {"count": 3, "lock": "<lock>"},
    } == logged
    odd = plain.wait_for_note("log", lambda params: params["message"] == "odd")
    assert {"$ot": "no tag"} == tagged.decode(odd["fields"])
    progressed = plain.wait_for_note("progress")
    assert {"id": pending.id, "done": 1, "total": 4, "message": "a quarter"} == progressed


@pytest.mark.parametrize(
    "reply",
    [
        {"result": 1},
        {"error": "no"},
        {},
        {"error": {"code": 1, "message": "odd"}},
        {"result": {"value": {"$ot": "no"}}},
        {"error": {"data": 5}},
    ],
)
def test_a_malformed_answer_fails_the_tool_and_nothing_else(plain: WorkerClient, reply: dict[str, Any]) -> None:
    held = threading.Event()

    def answer(params: dict[str, Any]) -> Any:
        plain.send_raw(wire.to_frame({"jsonrpc": "2.0", "id": "w1", **reply}))
        held.wait(PATIENCE)

    plain.on_call_tool = answer
    with pytest.raises(Failed):
        plain.call("ask", tool="a.b", arguments={})
    held.set()
    assert "alive" == plain.call("echo", value="alive")
