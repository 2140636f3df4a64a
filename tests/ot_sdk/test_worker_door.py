"""The door of a worker: who answers how many calls in a second, and how a worker ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from worker_client import BOOTSTRAP, PACKS, Failed, Gone, NewWorker, WorkerClient, WritePack

from ot_sdk import tagged, wire
from pace import PATIENCE, within


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


CALLS = 1_000
ROUNDS = 4
MOST_ECHOES = 50
ECHO = "import sys\nfor line in sys.stdin.buffer:\n    sys.stdout.buffer.write(line)\n    sys.stdout.buffer.flush()"


@pytest.mark.parametrize(("pack", "tool"), [("plain", "echo"), ("mixed", "aecho")])
def test_a_worker_answers_thousands_of_calls_a_second(
    new_worker: NewWorker, pack: str, tool: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = min(echo_seconds() for _ in range(ROUNDS))
    worker = new_worker()
    worker.init(PACKS / f"{pack}_tools.py")
    rates: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for number in range(CALLS):
            assert number == worker.call(tool, value=number)
        rates.append(CALLS / (time.perf_counter() - start))
    with capsys.disabled():
        print(f"\n{pack}.{tool}: {max(rates):,.0f} calls/s, one after the other")  # noqa: T201 - the figure is for people
    # A call has two threads, tags and a thread's change more than a line that is sent back.
    assert 1 / max(rates) < MOST_ECHOES * plain


def echo_seconds() -> float:
    """Return how long the same machine takes to send a line to a process and back."""
    with subprocess.Popen([sys.executable, "-c", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        start = time.perf_counter()
        for _ in range(CALLS):
            process.stdin.write(b"a line\n")
            process.stdin.flush()
            assert process.stdout.readline()
        return (time.perf_counter() - start) / CALLS


def test_a_worker_ends_with_its_input(plain: WorkerClient, mixed: WorkerClient) -> None:
    for worker in (plain, mixed):
        assert 0 == worker.end()
        assert "" == worker.error_text()


def test_a_worker_that_was_never_started_ends_with_its_input(new_worker: NewWorker) -> None:
    assert 0 == new_worker().end()


@pytest.mark.parametrize(
    ("pack", "tool", "arguments"),
    [("plain", "spin", {}), ("plain", "wait_for", {"gate": "/nonexistent"}), ("mixed", "forever", {})],
)
def test_calls_that_run_do_not_keep_a_worker_alive(
    new_worker: NewWorker, pack: str, tool: str, arguments: dict[str, Any]
) -> None:
    worker = new_worker()
    worker.init(PACKS / f"{pack}_tools.py")
    pending = worker.begin(tool, ms=600_000, **arguments)
    worker.wait_for_note("print")
    with within(1):
        assert 0 == worker.end()
    with pytest.raises(Gone):
        pending.value()


def test_a_thread_that_a_tool_left_behind_does_not_keep_a_worker_alive(plain: WorkerClient) -> None:
    assert "left" == plain.call("leave_thread_running")
    with within(1):
        assert 0 == plain.end()


def test_what_was_written_to_standard_error_is_there_in_the_end(new_worker: NewWorker, write_pack: WritePack) -> None:
    worker = new_worker()
    worker.init(
        write_pack("import sys\ndef tool():\n    sys.__stdout__.write('buffered')\n    sys.stderr.write('half')")
    )
    worker.call("tool")
    worker.end()
    assert {"buffered", "half"} == set(worker.error_text().replace("half", " half ").split())


def test_a_tool_that_closes_every_file_ends_the_worker(plain: WorkerClient) -> None:
    with pytest.raises(Gone):
        plain.call("close_files")
    assert 4 == plain.wait()
    assert "did a tool close all files?" in plain.error_text()


def test_an_async_tool_that_closes_every_file_ends_the_worker(new_worker: NewWorker, write_pack: WritePack) -> None:
    worker = new_worker()
    worker.init(write_pack("import os\nasync def close_files():\n    os.closerange(3, 256)"))
    with pytest.raises(Gone):
        worker.call("close_files")
    assert 4 == worker.wait()


def test_a_worker_whose_replies_nobody_reads_any_more_ends() -> None:
    command = [sys.executable, "-I", str(BOOTSTRAP)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin and process.stdout
        process.stdout.close()
        process.stdin.write(wire.to_frame(wire.request("s1", "no such method", {})))
        assert 0 == process.wait(PATIENCE)


def test_an_interrupt_from_a_terminal_does_not_end_a_worker(plain: WorkerClient, mixed: WorkerClient) -> None:
    for worker, tool in ((plain, "echo"), (mixed, "aecho")):
        assert "before" == worker.call(tool, value="before")
        worker.process.send_signal(signal.SIGINT)
        assert "after" == worker.call(tool, value="after")
        assert 0 == worker.end()


def test_messages_that_came_before_the_end_are_still_obeyed(plain: WorkerClient) -> None:
    pending = plain.begin("echo", value=1)
    assert 1 == pending.value()
    plain.send_raw(wire.to_frame(wire.notification("cancel", {"id": "gone"})))
    assert 0 == plain.end()
