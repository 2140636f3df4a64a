"""Messages as lines."""

from __future__ import annotations

import errno
import json
import os
import threading
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ot_sdk import wire
from ot_sdk.errors import FrameTooLarge

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
MESSAGES = st.dictionaries(st.text(max_size=5), JSON, max_size=4)


def cuts(data: bytes, sizes: list[int]) -> list[bytes]:
    """Return *data* in parts of these sizes, over and over."""
    parts: list[bytes] = []
    number = 0
    while data:
        size = sizes[number % len(sizes)]
        parts.append(data[:size])
        data, number = data[size:], number + 1
    return parts


@given(st.lists(MESSAGES, max_size=5), st.lists(st.integers(1, 40), min_size=1))
@example([{"a": "line\nbreak\r\u2028"}], [1])
@example([{"lone": "\ud800"}], [1])
def test_messages_arrive_whole_however_their_bytes_are_cut(messages: list[dict[str, Any]], sizes: list[int]) -> None:
    splitter = wire.FrameSplitter()
    data = b"".join(map(wire.to_frame, messages))
    arrived = [message for part in cuts(data, sizes) for message in splitter.feed(part)]
    assert messages == arrived
    assert 0 == splitter.skipped


@given(MESSAGES)
def test_a_frame_is_one_line_of_utf8(message: dict[str, Any]) -> None:
    frame = wire.to_frame(message)
    assert 1 == frame.count(b"\n")
    assert message == json.loads(frame.decode())


@given(st.lists(JSON, max_size=8))
@example([1, "a,b", None])
@example(["lone \ud800", 1])
def test_values_by_line_are_those_values_a_line_each(values: list[Any]) -> None:
    lines = wire.to_json_lines(values)
    assert values == json.loads(b"[" + lines + b"]")
    assert values == [json.loads(line.removesuffix(b",")) for line in lines.split(b"\n") if line]


BAD = [
    b"\xff\xfe\x00",
    b"no json",
    b"[1, 2]",
    b'"text"',
    b"{",
    b'{"a": NaN}',
    b'{"a": -Infinity}',
    b"[" * 100_000,
    b'{"a":' + b"[" * 100_000,
    b'{"a": "' + b"x" * 2000 + b'"}',
    '{"a": 1}'.encode("utf-16"),
]


@given(st.lists(st.sampled_from(BAD) | st.binary().filter(lambda line: b"\n" not in line), max_size=6))
def test_bad_lines_never_take_a_good_one_with_them(lines: list[bytes]) -> None:
    splitter = wire.FrameSplitter(max_frame=1000)
    data = b"".join(line + b"\n" + wire.to_frame({"good": number}) for number, line in enumerate(lines))
    arrived = [message for part in cuts(data, [7, 700]) for message in splitter.feed(part)]
    good = [message["good"] for message in arrived if "good" in message]
    assert list(range(len(lines))) == good
    assert len(lines) >= splitter.skipped >= sum(line in BAD for line in lines)


def test_empty_lines_are_no_messages_and_no_mistakes() -> None:
    splitter = wire.FrameSplitter()
    assert [{}] == splitter.feed(b"\n\r\n  \n{}\r\n")
    assert 0 == splitter.skipped


def test_a_line_without_end_is_not_kept() -> None:
    splitter = wire.FrameSplitter(max_frame=1 << 20)
    for _ in range(64):
        splitter.feed(b"x" * (1 << 20))
    assert len(splitter._line) <= 1 << 20
    assert [{"next": 1}] == splitter.feed(b'x\n{"next": 1}\n')
    assert 1 == splitter.skipped


def test_a_line_of_the_largest_size_passes_and_a_larger_one_does_not() -> None:
    largest = b'{"a":"' + b"x" * 91 + b'"}'
    splitter = wire.FrameSplitter(max_frame=len(largest) + 1)
    assert 1 == len(splitter.feed(largest + b"\n"))
    assert [] == splitter.feed(b" " + largest + b"\n")


def test_a_message_that_is_too_large_is_not_sent() -> None:
    with pytest.raises(FrameTooLarge, match="16,777,2"):
        wire.to_frame({"a": "x" * wire.MAX_FRAME})


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        wire.to_frame({"a": float("nan")})


def test_replies_carry_the_id_of_their_request() -> None:
    assert {"jsonrpc": "2.0", "id": "s1", "method": "call", "params": {}} == wire.request("s1", "call", {})
    assert {"jsonrpc": "2.0", "method": "log", "params": {}} == wire.notification("log", {})
    assert {"jsonrpc": "2.0", "id": "s1", "result": {"value": 1}} == wire.result("s1", {"value": 1})
    failed = {"code": -32000, "message": "no", "data": {"kind": "ValueError", "traceback": "t"}}
    assert {"jsonrpc": "2.0", "id": "s1", "error": failed} == wire.error(
        "s1", -32000, "no", kind="ValueError", traceback="t"
    )


# ---------------------------------------------------------------- file descriptors


def test_many_threads_write_whole_frames_only() -> None:
    read_end, write_end = os.pipe()
    writer = wire.FrameWriter(write_end)
    texts = {f"{thread}-{number}" for thread in range(8) for number in range(50)}

    def send(thread: int) -> None:
        for number in range(50):
            writer.send({"text": f"{thread}-{number}", "padding": "x" * 9_000})

    threads = [threading.Thread(target=send, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    closer = threading.Thread(target=lambda: ([thread.join() for thread in threads], os.close(write_end)))
    closer.start()
    splitter = wire.FrameSplitter()
    assert texts == {message["text"] for message in splitter.read(read_end)}
    assert 0 == splitter.skipped
    closer.join()
    os.close(read_end)


def test_a_frame_sent_while_another_is_being_sent_follows_it() -> None:
    read_end, write_end = os.pipe()
    writer = wire.FrameWriter(write_end)
    write = writer._write

    def write_and_print(frame: bytes) -> None:
        if b"first" in frame:
            writer.send({"text": "from a __del__"})
        write(frame)

    writer._write = write_and_print
    writer.send({"text": "first"})
    os.close(write_end)
    assert ["first", "from a __del__"] == [message["text"] for message in wire.FrameSplitter().read(read_end)]
    os.close(read_end)


def test_nothing_is_written_into_a_file_that_took_the_descriptors_place(tmp_path: Any) -> None:
    read_end, write_end = os.pipe()
    writer = wire.FrameWriter(write_end)
    with (tmp_path / "other").open("wb") as other:
        os.dup2(other.fileno(), write_end)
        with pytest.raises(OSError, match="descriptor") as caught:
            writer.send({"a": 1})
    assert errno.EBADF == caught.value.errno
    assert b"" == (tmp_path / "other").read_bytes()
    os.close(read_end)
    os.close(write_end)


def test_a_half_line_at_the_end_is_no_message() -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b'{"a": 1}\n{"result": "ha')
    os.close(write_end)
    assert [{"a": 1}] == list(wire.FrameSplitter().read(read_end))
    os.close(read_end)
