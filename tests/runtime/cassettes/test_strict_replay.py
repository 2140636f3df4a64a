"""A replay is strict: calls are matched by tool and arguments, in order within a task, and none may be left over."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ot.config.document import parse
from ot.runtime.cassettes.cassette import BOUNDS, Cassette, RecordedCall, encode_plain, read_cassette
from ot_sdk.tagged import decode
from runtime.cassettes.taped import record, replay

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_engine")]

CLOCK = datetime(2026, 11, 19, 10, 0, 0, 123, tzinfo=UTC)
TWO = "a = file.read(path='a.txt')\nb = file.read(path='b.txt')\n[a, b]"


@pytest.fixture
async def recorded(tmp_path: Path, each_engine: str) -> Path:
    """A cassette of two calls."""
    await record(tmp_path / "there", TWO, tmp_path / "two.yaml")
    return tmp_path / "two.yaml"


async def test_an_unexpected_call_fails_with_the_nearest_recorded_one(recorded: Path, tmp_path: Path) -> None:
    command = "file.read(path='a.txt')\nfile.read(path='b.text')"
    reply, tape = await replay(tmp_path / "here", command, recorded)
    assert reply.error == "NotRecorded"
    said = "file.read(path='b.text') is not in the cassette; the nearest recorded call is file.read(path='b.txt')"
    assert said in reply.text
    assert tape.finish() == ["not called, though it was recorded: file.read(path='b.txt')"]


async def test_the_program_cannot_catch_that(recorded: Path, tmp_path: Path) -> None:
    command = "try:\n    file.read(path='c.txt')\nexcept BaseException:\n    pass\n'went on'"
    reply, _ = await replay(tmp_path / "here", command, recorded)
    assert reply.error == "NotRecorded"


async def test_another_order_fails(recorded: Path, tmp_path: Path) -> None:
    reply, _ = await replay(tmp_path / "here", "file.read(path='b.txt')\nfile.read(path='a.txt')", recorded)
    assert "file.read(path='b.txt') was made later when it was recorded" in reply.text


async def test_a_call_too_many_fails(recorded: Path, tmp_path: Path) -> None:
    reply, _ = await replay(tmp_path / "here", f"{TWO}\nfile.read(path='a.txt')", recorded)
    assert "is not in the cassette: all recorded calls have been made" in reply.text


async def test_calls_that_are_left_over_are_told(recorded: Path, tmp_path: Path) -> None:
    reply, tape = await replay(tmp_path / "here", "file.read(path='a.txt')", recorded)
    assert reply.texts == ("first\nsecond\n",)
    assert tape.list_differences()[0] == "not called, though it was recorded: file.read(path='b.txt')"


async def test_calls_in_parallel_may_be_made_in_another_order(tmp_path: Path) -> None:
    command = "import asyncio\nfound = await asyncio.gather(*[file.read(path=p) for p in {}])\nsorted(found)"
    await record(tmp_path / "there", command.format(["a.txt", "b.txt"]), tmp_path / "x.yaml")
    reply, tape = await replay(tmp_path / "here", command.format(["b.txt", "a.txt"]), tmp_path / "x.yaml")
    assert (reply.is_error, tape.list_differences()) == (False, [])


async def test_the_order_of_keywords_does_not_matter(tmp_path: Path) -> None:
    await record(tmp_path / "there", "brave.web_search(query='x', count=1)", tmp_path / "x.yaml")
    reply, _ = await replay(tmp_path / "here", "brave.web_search(count=1, query='x')", tmp_path / "x.yaml")
    assert reply.value == ["x 0"]


async def test_a_sleep_takes_no_time_when_it_is_replayed(tmp_path: Path) -> None:
    await record(tmp_path / "there", "import time\ntime.sleep(0.01)\nodd.later(seconds=0, what='x')", tmp_path / "x")
    command = "import time\ntime.sleep(60)\nodd.later(seconds=0, what='x')"
    reply, _ = await replay(tmp_path / "here", command, tmp_path / "x", {"limits": {"run_seconds": 100}})
    assert reply.value == "x"
    assert reply.seconds < 50


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates()
    | st.sampled_from(["no", "1e3", "0o17", "~", "- x", "a: b", "# x", " x ", "x\n", "\nx", "'", "\t", "...", "---"]),
    lambda parts: st.lists(parts) | st.tuples(parts) | st.dictionaries(st.text(), parts),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(value=PLAIN)
def test_every_plain_value_is_read_as_it_was_written(value: Any) -> None:
    call = RecordedCall(call="web.fetch", args=[encode_plain(value, str)], returns=encode_plain([value], str))
    text = Cassette(cassette=1, clock=CLOCK, seed=1, calls=[call]).text()
    read = parse(text.encode(), Path("x"), BOUNDS).at("calls").items[0]
    assert repr(decode(read.at("returns").plain())) == repr([value])
    assert repr(decode(read.at("args").plain())) == repr([value])


def test_a_cassette_reads_as_it_was_written(tmp_path: Path) -> None:
    told: list[Any] = [{"print": {"text": "x"}}]
    call = RecordedCall(call="web.fetch", args=[1], kwargs={"a": "b"}, task=2, at=0.5, told=told, returns=None)
    failed = RecordedCall(call="web.fetch", raises="ValueError", message="no")
    open_one = RecordedCall(call="open:read", kwargs={"path": "x"})
    calls, members = [call, failed, open_one], {"proj.a": "/a"}
    written = Cassette(cassette=1, engine="exact", clock=CLOCK, seed=7, packs=["web"], members=members, calls=calls)
    written.save(tmp_path / "x", str)
    read = read_cassette(tmp_path / "x")
    assert read.text() == written.text()
    assert read == written
    assert [one.is_answered for one in read.calls] == [True, True, False]
