"""Every call gets exactly one reply, whatever its tool does."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from worker_client import PACKS, Failed, Gone, NewWorker, WorkerClient, WritePack

from ot_sdk import wire
from ot_sdk.runners import Turns
from pace import within

# ---------------------------------------------------------------- failing


@pytest.mark.parametrize(
    "kind", ["ValueError", "SystemExit", "KeyboardInterrupt", "GeneratorExit", "StopIteration", "Own"]
)
def test_any_exception_of_a_tool_becomes_an_error_reply(plain: WorkerClient, kind: str) -> None:
    with pytest.raises(Failed) as caught:
        plain.call("fail", kind=kind, message="why")
    assert (wire.TOOL_FAILED, kind, "why") == (caught.value.code, caught.value.kind, caught.value.message)
    assert "alive" == plain.call("echo", value="alive")


@pytest.mark.parametrize("kind", ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "CancelledError"])
def test_any_exception_of_an_async_tool_becomes_an_error_reply(mixed: WorkerClient, kind: str) -> None:
    with pytest.raises(Failed) as caught:
        mixed.call("afail", kind=kind)
    assert (wire.TOOL_FAILED, kind) == (caught.value.code, caught.value.kind)
    assert "alive" == mixed.call("aecho", value="alive")


def test_a_tool_that_cancels_its_own_task_gets_an_error_reply(mixed: WorkerClient) -> None:
    with pytest.raises(Failed) as caught:
        mixed.call("afail", kind="cancel itself")
    assert "CancelledError" == caught.value.kind


def test_a_tool_that_stops_the_event_loop_stops_no_other_call(mixed: WorkerClient) -> None:
    assert "stopped" == mixed.call("afail", kind="stop the loop")
    assert "alive" == mixed.call("aecho", value="alive")


def test_an_exception_that_cannot_be_shown_is_still_an_error_reply(plain: WorkerClient) -> None:
    with pytest.raises(Failed) as caught:
        plain.call("fail", kind="Mute", message="")
    assert ("Mute", "") == (caught.value.kind, caught.value.message)


def test_the_traceback_shows_the_tools_own_frames_only(plain: WorkerClient) -> None:
    with pytest.raises(Failed) as caught:
        plain.call("fail_inside", depth=2)
    trace = caught.value.traceback
    assert 3 == trace.count("in fail_inside")
    assert "plain_tools.py" in trace
    assert "ot_sdk" not in trace.replace(str(PACKS), "")
    assert trace.endswith("ZeroDivisionError: integer division or modulo by zero\n")


def test_long_messages_and_tracebacks_are_cut_in_the_middle(plain: WorkerClient) -> None:
    with pytest.raises(Failed) as caught:
        plain.call("fail", kind="ValueError", message="begin" + "x" * 1_000_000 + "end")
    message, trace = caught.value.message, caught.value.traceback
    assert len(message) <= 8_192
    assert message.startswith("begin") and message.endswith("end")
    assert len(trace) <= 4_096
    assert "in fail" in trace
    with pytest.raises(Failed) as caught:
        plain.call("fail_inside", depth=5_000)
    assert "RecursionError" == caught.value.kind
    assert len(caught.value.traceback) <= 4_096


def test_wrong_arguments_are_the_tools_own_type_error(plain: WorkerClient, mixed: WorkerClient) -> None:
    for worker, tool in ((plain, "echo"), (mixed, "aecho")):
        with pytest.raises(Failed, match="unexpected keyword argument 'nothing'") as caught:
            worker.call(tool, nothing=1)
        assert "TypeError" == caught.value.kind


def test_a_value_that_cannot_cross_is_an_error_that_says_where(plain: WorkerClient) -> None:
    with pytest.raises(Failed, match=r"value\['rows'\]\[1\]\['lock'\]: lock is not plain data") as caught:
        plain.call("return_lock")
    assert (wire.RESULT_REFUSED, "NotPlain") == (caught.value.code, caught.value.kind)


def test_an_iterator_that_fails_is_the_tools_failure(plain: WorkerClient) -> None:
    with pytest.raises(Failed, match="halfway") as caught:
        plain.call("return_failing")
    assert "LookupError" == caught.value.kind


def test_an_iterator_without_end_is_refused(plain: WorkerClient) -> None:
    with pytest.raises(Failed, match="an iterator without end") as caught:
        plain.call("return_endless")
    assert (wire.RESULT_REFUSED, "TooMany") == (caught.value.code, caught.value.kind)


def test_a_tool_that_ends_the_process_ends_the_wire(plain: WorkerClient) -> None:
    waiting = plain.begin("wait_for", gate="/nonexistent")
    with pytest.raises(Gone):
        plain.call("leave", status=7)
    with pytest.raises(Gone):
        waiting.value()
    assert 7 == plain.wait()


# ---------------------------------------------------------------- at the same time


def test_plain_tools_run_at_the_same_time_up_to_the_number_of_threads(new_worker: NewWorker, tmp_path: Path) -> None:
    worker = new_worker()
    worker.init(PACKS / "mixed_tools.py", threads=3)
    calls = [worker.begin("running", gate=str(tmp_path / "gate")) for _ in range(6)]
    for pending in calls[:3]:
        worker.wait_for_note("print", lambda params, id=pending.id: params["id"] == id)
    assert "beside" == worker.call("aecho", value="beside")
    (tmp_path / "gate").touch()
    assert [3] * 6 == [pending.value() for pending in calls]


def test_async_tools_run_at_the_same_time_up_to_the_number_of_tasks(new_worker: NewWorker) -> None:
    worker = new_worker()
    worker.init(PACKS / "mixed_tools.py", tasks=2)
    held = [worker.begin("forever") for _ in range(2)]
    for pending in held:
        worker.wait_for_note("print", lambda params, id=pending.id: params["id"] == id)
    waiting = worker.begin("aecho", value="at last")
    assert "beside" == worker.call("echo", value="beside")
    assert waiting.replies.empty()
    worker.cancel(held[0])
    assert "at last" == waiting.value()


def test_a_serial_pack_runs_one_call_at_a_time_of_whatever_kind(new_worker: NewWorker, tmp_path: Path) -> None:
    worker = new_worker()
    worker.init(PACKS / "mixed_tools.py", serial=True)
    held = worker.begin("forever")
    worker.wait_for_note("print")
    order = [worker.begin("echo", value=1), worker.begin("aecho", value=2), worker.begin("echo", value=3)]
    worker.request("no such method", {}, id="marker")
    assert all(pending.replies.empty() for pending in order)
    worker.cancel(held)
    assert [1, 2, 3] == [pending.value() for pending in order]


def test_a_plain_function_that_returns_a_coroutine_is_awaited(mixed: WorkerClient) -> None:
    assert "inside" == mixed.call("wrapped", value="inside")


# ---------------------------------------------------------------- cancelling


def ended(worker: WorkerClient, tool: str, **arguments: Any) -> tuple[Failed, float]:
    """Start a tool, cancel it once it has printed, and return its error and how long that took."""
    pending = worker.begin(tool, ms=600_000, **arguments)
    worker.wait_for_note("print", lambda params: params["id"] == pending.id)
    start = time.monotonic()
    worker.cancel(pending)
    with pytest.raises(Failed) as caught:
        pending.value()
    return caught.value, time.monotonic() - start


def answer_seconds(worker: WorkerClient, tool: str) -> float:
    """Return how long the slowest of some calls takes at present that have nothing to do."""
    taken: list[float] = []
    for _ in range(20):
        start = time.monotonic()
        worker.call(tool, value=1)
        taken.append(time.monotonic() - start)
    return max(taken)


@pytest.mark.parametrize("tool", ["spin", "spin_printing", "wait_for"])
def test_a_plain_tool_in_python_code_is_interrupted_within_half_a_second(plain: WorkerClient, tool: str) -> None:
    taken: list[float] = []
    for _ in range(5):
        error, seconds = ended(plain, tool, **({"gate": "/nonexistent"} if tool == "wait_for" else {}))
        assert (wire.CANCELLED, "Cancelled", "the call was cancelled") == (error.code, error.kind, error.message)
        taken.append(seconds)
    assert min(taken) < 0.5 + answer_seconds(plain, "echo")
    assert "alive" == plain.call("echo", value="alive")


def test_an_async_tool_is_cancelled_and_may_clean_up(mixed: WorkerClient) -> None:
    taken: list[float] = []
    for _ in range(5):
        error, seconds = ended(mixed, "forever")
        assert (wire.CANCELLED, "Cancelled") == (error.code, error.kind)
        taken.append(seconds)
    assert min(taken) < 0.5 + answer_seconds(mixed, "aecho")
    mixed.wait_for_note("print", lambda params: params["text"] == "cleaned up\n")


def test_a_tool_that_returns_though_cancelled_is_answered_under_its_own_id(
    plain: WorkerClient, mixed: WorkerClient, tmp_path: Path
) -> None:
    stubborn = plain.begin("spin_stubborn")
    plain.wait_for_note("print")
    plain.cancel(stubborn)
    assert "late" == stubborn.value()
    assert "spinning\ncleaning up\n" == plain.printed(stubborn)

    late = mixed.begin("late", gate=str(tmp_path / "gate"))
    mixed.wait_for_note("print")
    mixed.cancel(late)
    assert "other" == mixed.call("aecho", value="other")
    (tmp_path / "gate").touch()
    assert "late" == late.value()


def test_cancelling_twice_interrupts_once(plain: WorkerClient) -> None:
    pending = plain.begin("spin_stubborn")
    plain.wait_for_note("print")
    for _ in range(10):
        plain.cancel(pending)
    assert "late" == pending.value()
    assert "alive" == plain.call("echo", value="alive")


@pytest.mark.parametrize(("pack", "hold", "tool"), [("plain", "spin", "echo"), ("mixed", "forever", "aecho")])
def test_a_call_cancelled_before_its_turn_never_runs(new_worker: NewWorker, pack: str, hold: str, tool: str) -> None:
    worker = new_worker()
    worker.init(PACKS / f"{pack}_tools.py", serial=True)
    held = worker.begin(hold)
    worker.wait_for_note("print")
    waiting = worker.begin(tool, value="never")
    worker.cancel(waiting)
    worker.cancel(held)
    for pending in (held, waiting):
        with pytest.raises(Failed) as caught:
            pending.value()
        assert wire.CANCELLED == caught.value.code
    assert "alive" == worker.call(tool, value="alive")


@pytest.mark.parametrize(("pack", "tool"), [("plain", "echo"), ("mixed", "aecho")])
def test_a_cancel_that_races_the_reply_leaves_every_later_call_alone(
    new_worker: NewWorker, pack: str, tool: str
) -> None:
    worker = new_worker()
    worker.init(PACKS / f"{pack}_tools.py")
    for number in range(500):
        pending = worker.begin(tool, value=number)
        worker.cancel(pending)
        try:
            assert number == pending.value()
        except Failed as error:
            assert wire.CANCELLED == error.code
    assert "alive" == worker.call(tool, value="alive")
    assert "" == worker.errors.decode()


def test_cancels_that_race_prints_never_tear_a_line(plain: WorkerClient) -> None:
    for _ in range(100):
        pending = plain.begin("spin_printing")
        plain.wait_for_note("print", lambda params, id=pending.id: params["id"] == id)
        plain.cancel(pending)
        with pytest.raises(Failed, match="cancelled"):
            pending.value()
        plain.notes.clear()
    assert 0 == plain.reader.skipped


# ---------------------------------------------------------------- deadlines


def test_an_async_tool_ends_with_its_time(mixed: WorkerClient) -> None:
    start = time.monotonic()
    with within(1.1), pytest.raises(Failed, match=r"mixed.forever did not answer within 0.1 s") as caught:
        mixed.begin("forever", ms=100).value()
    assert (wire.TOOL_TIMEOUT, "ToolTimeout") == (caught.value.code, caught.value.kind)
    assert 0.1 <= time.monotonic() - start


@pytest.mark.parametrize(("pack", "tool"), [("plain", "echo"), ("mixed", "aecho")])
def test_a_call_whose_time_is_over_is_not_begun(new_worker: NewWorker, pack: str, tool: str) -> None:
    worker = new_worker()
    worker.init(PACKS / f"{pack}_tools.py")
    with pytest.raises(Failed) as caught:
        worker.begin(tool, ms=0, value=1).value()
    assert wire.TOOL_TIMEOUT == caught.value.code


# ---------------------------------------------------------------- forking


def test_a_forked_child_does_not_speak_for_its_parent(plain: WorkerClient) -> None:
    pending = plain.begin("fork_and_return")
    assert "from the parent" == pending.value()
    assert "" == plain.printed(pending)
    assert [] == plain.notes
    plain.end()
    assert "printed by the child" in plain.error_text()


def test_processes_that_a_tool_starts_by_multiprocessing_can_use_the_pack(
    new_worker: NewWorker, write_pack: WritePack
) -> None:
    worker = new_worker()
    source = """
        import multiprocessing
        import ot_sdk

        def double(number):
            print("in the child", flush=True)
            return number * 2

        def doubled(method, number):
            with multiprocessing.get_context(method).Pool(1) as pool:
                return pool.apply(double, (number,))
    """
    worker.init(write_pack(source))
    assert [14, 14] == [worker.call("doubled", method=method, number=7) for method in ("spawn", "fork")]
    assert [] == worker.notes
    worker.end()
    assert 2 == worker.error_text().count("in the child")


# ---------------------------------------------------------------- turns


def test_calls_start_in_order_and_never_more_at_once_than_allowed() -> None:
    turns, started = Turns(2), list[int]()
    for number in range(5):
        turns.take(lambda number=number: started.append(number))
    assert [0, 1] == started
    turns.give_back()
    assert [0, 1, 2] == started
    for _ in range(4):
        turns.give_back()
    assert [0, 1, 2, 3, 4] == started
    turns.take(lambda: started.append(5))
    turns.take(lambda: started.append(6))
    turns.take(lambda: started.append(7))
    assert [5, 6] == started[5:]
