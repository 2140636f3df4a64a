"""How a worker ends: with its input, and never by hanging."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import pytest
from worker_client import BOOTSTRAP, PACKS, Gone, NewWorker, WorkerClient, WritePack

from ot_sdk import wire
from pace import PATIENCE, within


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
