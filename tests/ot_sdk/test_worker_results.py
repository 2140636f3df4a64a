"""Large values go through a file, and cost little more memory than they are."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from worker_client import PACKS, Failed, NewWorker, WorkerClient

from ot_sdk import tagged, wire
from ot_sdk.replies import is_little

ABOVE = 1 << 20


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    """The directory that a server would make for a worker."""
    directory = tmp_path / "spool"
    directory.mkdir(mode=0o700)
    return directory


@pytest.fixture
def spooling(new_worker: NewWorker, spool: Path) -> WorkerClient:
    """A worker that puts values above 1 MiB into files."""
    worker = new_worker()
    worker.init(PACKS / "plain_tools.py", spool=str(spool), spool_above=ABOVE)
    return worker


def spooled(worker: WorkerClient, spool: Path, tool: str, **arguments: Any) -> tuple[str, str]:
    """Return the text of the file that a call left, and its form."""
    reply = worker.begin(tool, **arguments).reply()["spooled"]
    file = spool / reply["name"]
    assert os.sep not in reply["name"]
    assert reply["bytes"] == file.stat().st_size
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    return file.read_text(encoding="utf-8"), reply["form"]


def test_a_text_is_spooled_as_it_is(spooling: WorkerClient, spool: Path) -> None:
    text, form = spooled(spooling, spool, "text", size=2_000_000, piece="line äöü\n")
    assert "text" == form
    assert "line äöü\n" * (2_000_000 // 9) == text


def test_a_text_that_utf8_cannot_hold_is_spooled_as_json(spooling: WorkerClient, spool: Path) -> None:
    text, form = spooled(spooling, spool, "text", size=2_000_000, piece="\ud800x")
    assert "json" == form
    assert "\ud800x" * 1_000_000 == tagged.decode(json.loads(text))
    assert 1 == len(list(spool.iterdir()))


@pytest.mark.parametrize("tool", ["rows", "row_stream"])
def test_a_list_is_spooled_an_element_a_line(spooling: WorkerClient, spool: Path, tool: str) -> None:
    text, form = spooled(spooling, spool, tool, count=20_000, width=100)
    expected = [{"n": number, "text": "y" * 100} for number in range(20_000)]
    assert "json" == form
    assert expected == tagged.decode(json.loads(text))
    lines = text.split("\n")
    assert 20_000 == len(lines)
    assert expected[7] == json.loads(lines[7].removesuffix(","))


def test_a_dict_is_spooled_a_key_a_line(spooling: WorkerClient, spool: Path) -> None:
    text, _ = spooled(spooling, spool, "table", count=20_000, width=100)
    assert {f"key {n}": "z" * 100 for n in range(20_000)} == json.loads(text)
    assert 20_000 == len(text.split("\n"))


@pytest.mark.parametrize(
    "value",
    [
        [1, 1 << 70, "a", None, (1, 2), {"$ot": 1}] * 50_000,
        tuple(range(300_000)),
        {n: str(n) for n in range(200_000)},
        set(range(300_000)),
        b"\0\1" * 1_000_000,
        {"$ot": "x" * 2_000_000},
    ],
    ids=["mixed", "tuple", "keys", "set", "bytes", "tag"],
)
def test_every_kind_of_value_can_be_read_back_from_its_file(spooling: WorkerClient, spool: Path, value: Any) -> None:
    text, form = spooled(spooling, spool, "echo", value=value)
    assert "json" == form
    assert value == tagged.decode(json.loads(text))


def test_values_that_fit_a_message_are_not_spooled(spooling: WorkerClient, spool: Path) -> None:
    for value in ("x" * (ABOVE - 2), ["x" * 99] * 10_000, {"rows": list(range(100_000))}, (1, [2]), [], (), {}):
        assert value == spooling.call("echo", value=value)
    assert [] == list(spool.iterdir())
    spooled(spooling, spool, "echo", value="x" * (ABOVE - 1))


@pytest.mark.parametrize("value", ["x" * wire.MAX_FRAME, ["x" * 1000] * 17_000])
def test_without_a_directory_what_no_message_can_hold_is_refused(new_worker: NewWorker, value: Any) -> None:
    worker = new_worker()
    worker.init(PACKS / "plain_tools.py")
    tool = ("text", {"size": len(value)}) if isinstance(value, str) else ("rows", {"count": 17_000, "width": 1000})
    with pytest.raises(Failed, match="return less of it") as caught:
        worker.call(tool[0], **tool[1])
    assert (wire.RESULT_REFUSED, "ResultTooLarge") == (caught.value.code, caught.value.kind)
    assert 10_000_000 == len(worker.call("text", size=10_000_000))


def test_a_disk_that_refuses_is_an_error_and_leaves_nothing(new_worker: NewWorker, spool: Path) -> None:
    (spool / "file").touch()
    worker = new_worker()
    worker.init(PACKS / "plain_tools.py", spool=str(spool / "file" / "gone"), spool_above=ABOVE)
    with pytest.raises(Failed, match="no file could be written for it: Not a directory") as caught:
        worker.call("rows", count=20_000, width=100)
    assert (wire.RESULT_REFUSED, "ResultTooLarge") == (caught.value.code, caught.value.kind)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk is played by a Linux limit on file sizes")
def test_a_disk_that_fills_up_midway_leaves_no_half_file(new_worker: NewWorker, spool: Path, tmp_path: Path) -> None:
    file = tmp_path / "small_tools.py"
    file.write_text(
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))\n"
        "def rows(): return ['x' * 100] * 100_000\n"
    )
    worker = new_worker()
    worker.init(file, spool=str(spool), spool_above=ABOVE)
    with pytest.raises(Failed, match="File too large") as caught:
        worker.call("rows")
    assert "ResultTooLarge" == caught.value.kind
    assert [] == list(spool.iterdir())


def test_an_iterator_that_fails_midway_leaves_no_half_file(new_worker: NewWorker, spool: Path, tmp_path: Path) -> None:
    file = tmp_path / "failing_tools.py"
    file.write_text("def rows():\n    yield from ['x' * 100] * 50_000\n    raise LookupError('midway')\n")
    worker = new_worker()
    worker.init(file, spool=str(spool), spool_above=ABOVE)
    with pytest.raises(Failed, match="midway") as caught:
        worker.call("rows")
    assert "LookupError" == caught.value.kind
    assert [] == list(spool.iterdir())


def test_a_large_value_of_an_async_tool_does_not_hold_up_other_calls(
    new_worker: NewWorker, spool: Path, tmp_path: Path
) -> None:
    worker = new_worker()
    worker.init(PACKS / "mixed_tools.py", spool=str(spool), spool_above=ABOVE)
    large = worker.begin("arows", count=20_000, gate=str(tmp_path / "gate"))
    worker.wait_for_note("print", lambda params: params == {"id": large.id, "text": "first row\n"})
    assert "small" == worker.call("aecho", value="small")
    assert large.replies.empty()
    (tmp_path / "gate").touch()
    assert 20_000 == len(json.loads((spool / large.reply()["spooled"]["name"]).read_text()))


# ---------------------------------------------------------------- memory


def growth(worker: WorkerClient, tool: str, **arguments: Any) -> tuple[int, int]:
    """Return by how many bytes a worker has grown at most during a call, and the size of the file that it left."""
    before = worker.call("peak_memory")
    size = worker.begin(tool, **arguments).reply()["spooled"]["bytes"]
    return worker.call("peak_memory") - before, size


def test_a_hundred_megabytes_of_text_cost_hardly_more_than_themselves(spooling: WorkerClient) -> None:
    grown, size = growth(spooling, "text", size=100_000_000)
    assert 100_000_000 == size
    assert grown < 1.2 * size


@pytest.mark.parametrize("tool", ["rows", "page"])
def test_rows_of_a_hundred_megabytes_cost_less_than_twice_themselves(spooling: WorkerClient, tool: str) -> None:
    grown, size = growth(spooling, tool, count=100_000, width=1_000)
    assert size > 100_000_000
    assert grown < 2 * size


def test_a_stream_of_a_hundred_megabytes_costs_next_to_nothing(spooling: WorkerClient) -> None:
    grown, size = growth(spooling, "row_stream", count=100_000, width=1_000)
    assert size > 100_000_000
    assert grown < 0.2 * size


@pytest.mark.parametrize(
    ("value", "little"),
    [
        (None, True),
        ({"a": [1, (2.0, b"x")], 3: {"y"}}, True),
        ("x" * 100_000, False),
        (list(range(100_000)), False),
        (1 << 10_000_000, False),
        (iter([1]), False),
    ],
    ids=["none", "nested", "long text", "long list", "large int", "iterator"],
)
def test_what_is_little_is_known_without_looking_at_all_of_it(value: Any, little: bool) -> None:
    assert little is is_little(value)


def test_a_circular_value_does_not_count_as_little() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert not is_little(circle)
