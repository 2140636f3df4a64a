"""Whatever a tool writes, and wherever, the wire carries the real replies."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from random import Random

import pytest
from worker_client import PACKS, Failed, NewWorker, WorkerClient, WritePack

from ot_sdk import wire


def test_what_a_tool_prints_arrives_under_its_call_before_its_value(plain: WorkerClient) -> None:
    pending = plain.begin("print_lines", count=3)
    assert "printed" == pending.value()
    assert "line 0\nline 1\nline 2\nrest" == plain.printed(pending)


def test_each_line_is_sent_as_soon_as_it_is_printed(plain: WorkerClient, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    pending = plain.begin("wait_for", gate=str(gate))
    assert {"id": pending.id, "text": "waiting\n"} == plain.wait_for_note("print")
    gate.touch()
    assert "opened" == pending.value()


def test_prints_of_concurrent_calls_are_not_mixed_up(mixed: WorkerClient) -> None:
    calls = {name: mixed.begin("aprint", value=name) for name in ("one", "two", "three")}
    assert list(calls) == [pending.value() for pending in calls.values()]
    for name, pending in calls.items():
        assert f"here {name}\nin a task {name}\n" == mixed.printed(pending)


def test_a_long_line_is_sent_in_pieces_and_arrives_whole(plain: WorkerClient) -> None:
    pending = plain.begin("print_long", size=1_000_000)
    assert 1_000_000 == pending.value()
    assert "x" * 1_000_000 == plain.printed(pending)


def test_standard_output_is_a_text_file_and_standard_input_is_empty(plain: WorkerClient) -> None:
    pending = plain.begin("print_odd")
    assert "utf-8 False True ''" == pending.value()
    assert "bytes \ufffd\nlone \ud800\n" == plain.printed(pending)


def test_a_thread_prints_for_the_call_only_if_it_has_its_context(plain: WorkerClient) -> None:
    pending = plain.begin("print_from_threads")
    assert "done" == pending.value()
    assert "of this call\n" == plain.printed(pending)
    plain.end()
    assert "of nobody\n" in plain.error_text()


def test_what_is_printed_after_the_reply_goes_to_standard_error(plain: WorkerClient, tmp_path: Path) -> None:
    pending = plain.begin("print_later", gate=str(tmp_path / "gate"))
    assert "returned" == pending.value()
    (tmp_path / "gate").touch()
    while "too late\n" not in plain.errors.decode():
        assert "alive" == plain.call("echo", value="alive")
    assert "" == plain.printed(pending)


def test_what_is_printed_at_import_goes_to_standard_error(new_worker: NewWorker, write_pack: WritePack) -> None:
    worker = new_worker()
    worker.init(write_pack("print('imported')\ndef tool(): return 1"))
    assert 1 == worker.call("tool")
    worker.end()
    assert "imported\n" in worker.error_text()
    assert [] == worker.notes


@pytest.mark.parametrize("tool", ["forge_prints", "forge_writes"])
def test_a_forged_reply_is_not_a_reply(plain: WorkerClient, tool: str) -> None:
    waiting = plain.begin("wait_for", gate="/nonexistent")
    ids = [waiting.id, *(f"s{number}" for number in range(10))]
    assert "real" == plain.call(tool, ids=ids)
    assert "mine" == plain.call("echo", value="mine")
    plain.cancel(waiting)
    with pytest.raises(Failed, match="cancelled"):
        waiting.value()


def test_twenty_megabytes_on_standard_error_do_not_stop_a_call(plain: WorkerClient) -> None:
    assert "flooded" == plain.call("flood", size=20_000_000)
    plain.end()
    plain.error_text()
    assert 20_000_000 == plain.stderr_bytes


def test_bad_lines_are_skipped_and_the_next_call_is_answered(plain: WorkerClient) -> None:
    for line in (b"\xff\xfe\x00", b"no json", b"[]", b"{}", b'{"id": 5}', b'{"method": 7}', b'{"result": 1, "id": []}'):
        plain.send_raw(line + b"\n")
    plain.send_raw(b'{"a":"' + b"x" * (wire.MAX_FRAME + 1) + b'"}\n')
    assert "still here" == plain.call("echo", value="still here")


def test_a_request_may_come_byte_by_byte(plain: WorkerClient) -> None:
    pending = plain.expect("slow")
    for byte in wire.to_frame(
        wire.request("slow", "call", {"tool": "echo", "arguments": {"value": "ä"}, "ms": 20_000})
    ):
        plain.send_raw(bytes([byte]))
    assert "ä" == pending.value()


def test_a_large_request_and_a_large_reply_pass_each_other(plain: WorkerClient) -> None:
    big = "x" * 5_000_000
    calls = [plain.begin("echo", value=big) for _ in range(4)]
    assert [len(big)] * 4 == [len(pending.value()) for pending in calls]


def test_unknown_methods_are_refused_and_unknown_notes_are_not_answered(plain: WorkerClient) -> None:
    with pytest.raises(Failed, match="there is no method 'restart'") as caught:
        plain.request("restart", {}).reply()
    assert wire.METHOD_NOT_FOUND == caught.value.code
    plain.send_raw(wire.to_frame(wire.notification("restart", {})))
    plain.send_raw(wire.to_frame(wire.notification("cancel", {"id": "nobody"})))
    plain.send_raw(wire.to_frame(wire.notification("cancel", {"id": ["nobody"]})))
    plain.send_raw(wire.to_frame(wire.result("w99", {"value": "nobody asked"})))
    assert 1 == plain.call("echo", value=1)


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        {},
        {"tool": "echo"},
        {"tool": "echo", "arguments": {}},
        {"tool": [], "arguments": {}, "ms": 1},
        {"tool": "echo", "arguments": {}, "ms": "soon"},
        {"tool": "echo", "arguments": [1], "ms": 1000},
        {"tool": "echo", "arguments": {"$ot": "no"}, "ms": 1000},
    ],
)
def test_a_malformed_call_is_answered_with_an_error(plain: WorkerClient, params: object) -> None:
    with pytest.raises(Failed) as caught:
        plain.request("call", params).reply()
    assert (wire.INVALID_PARAMS, "InvalidArguments") == (caught.value.code, caught.value.kind)


def test_an_unknown_tool_is_an_error_that_names_it(mixed: WorkerClient) -> None:
    with pytest.raises(Failed, match="'not_a_tool' is not in pack 'mixed'") as caught:
        mixed.call("not_a_tool")
    assert (wire.INVALID_PARAMS, "UnknownTool") == (caught.value.code, caught.value.kind)


def test_a_second_call_with_the_id_of_a_running_one_is_not_taken_for_it(plain: WorkerClient, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    running = plain.begin("wait_for", gate=str(gate))
    plain.wait_for_note("print")
    plain.send_raw(
        wire.to_frame(wire.request(running.id, "call", {"tool": "echo", "arguments": {"value": 1}, "ms": 9}))
    )
    assert 2 == plain.call("echo", value=2)
    gate.touch()
    assert "opened" == running.value()


@pytest.mark.parametrize(("pack", "tool"), [("plain", "echo"), ("mixed", "aecho")])
def test_eight_callers_get_their_own_values(new_worker: NewWorker, pack: str, tool: str) -> None:
    worker = new_worker()
    worker.init(PACKS / f"{pack}_tools.py")
    wrong: list[tuple[str, object]] = []

    def caller(number: int) -> None:
        for turn in range(50):
            nonce = f"{number}-{turn}"
            value = worker.call(tool, value=nonce)
            if value != nonce:
                wrong.append((nonce, value))

    threads = [threading.Thread(target=caller, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong


def test_the_worker_sees_only_its_own_three_files_and_the_wire(new_worker: NewWorker, write_pack: WritePack) -> None:
    # The interpreter below the environment: the one of the tests has the project itself on its path.
    worker = new_worker(sys._base_executable)  # type: ignore[attr-defined] - there is no public name for it
    source = """
        import os, subprocess, sys
        def inherited():
            code = "import os; print(sorted(os.listdir('/proc/self/fd')))"
            return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, close_fds=False).stdout
        def path():
            return [sys.path, "ot_sdk" in sys.modules]
    """
    worker.init(write_pack(source))
    assert "['0', '1', '2', '3']\n" == worker.call("inherited")
    path, has_sdk = worker.call("path")
    assert has_sdk
    assert str(Path(wire.__file__).parent.parent) not in path


def mutated(frame: bytes, random: Random) -> bytes:
    """Return *frame* with some of its bits flipped, or cut short, or doubled."""
    data = bytearray(frame[:-1])
    for _ in range(random.randint(1, 8)):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data[: random.choice([len(data), random.randrange(len(data))])]).replace(b"\n", b"") + b"\n"


@pytest.mark.parametrize("pack", ["plain", "mixed"])
def test_a_worker_survives_whatever_bytes_it_is_sent(pack: str) -> None:
    random = Random(20_26)
    worker = WorkerClient()
    frames = [
        wire.to_frame(
            wire.request("fuzz-1", "call", {"tool": "echo", "arguments": {"value": [1, {"a": 2}]}, "ms": 900})
        ),
        wire.to_frame(wire.request("fuzz-2", "call", {"tool": "aecho", "arguments": {"value": "text"}, "ms": 900})),
        wire.to_frame(wire.request("fuzz-3", "init", {"protocol": 1, "pack": "x"})),
        wire.to_frame(wire.notification("cancel", {"id": "fuzz-1"})),
        wire.to_frame(wire.result("w1", {"value": {"$ot": "tuple", "v": []}})),
    ]
    try:
        worker.init(PACKS / f"{pack}_tools.py")
        for _ in range(3_000):
            worker.send_raw(mutated(random.choice(frames), random))
        worker.send_raw(random.randbytes(100_000) + b"\n")
        assert "alive" == worker.call("echo", value="alive")
        assert 0 == worker.end()
        assert "" == worker.error_text()
        assert 0 == worker.reader.skipped
    finally:
        worker.close()
