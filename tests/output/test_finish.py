"""How a value becomes a reply, and one that is too large to be read whole is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.config.models import Output
from ot.output import finish as finish_module
from ot.output.finish import Asked, Finish
from ot.output.result_store import ResultStore
from ot.output.stored_text import stored_text, unread_lines
from ot.values.parts import NotSerializable, Unread, has_many_parts
from ot_sdk import tagged
from output.store_desk import file_store

pytestmark = pytest.mark.anyio

FRAME = re.compile(r'<(external-content-[0-9a-f]{32}) source="([^"]*)">\n(.*)\n</\1>', re.DOTALL)
ME = "me"


def make(directory: Path, *, full: bool = False, **settings: Any) -> tuple[Finish, ResultStore]:
    output = Output.model_validate({"max_inline_size": 1000, **settings})
    most = 1 if full else output.max_total_bytes
    store = file_store(directory / "tmp", 60, max_total_bytes=most, max_page_bytes=10_000)
    return Finish(output, store), store


def content(store: ResultStore, handle: str) -> str:
    with store.open_content(handle, owner=ME) as file:
        return file.read().decode()


async def test_a_small_value_comes_back_formatted(tmp_path: Path) -> None:
    finish, _ = make(tmp_path)
    assert await finish.value({"a": [1]}, Asked(format="yml")) == "{a: [1]}"
    assert not (tmp_path / "tmp").exists()


async def test_the_limit_is_counted_in_bytes_and_belongs_to_the_small(tmp_path: Path) -> None:
    finish, _ = make(tmp_path)
    assert await finish.value("é" * 500, Asked(owner=ME)) == "é" * 500
    assert "handle" in json.loads(await finish.value("é" * 500 + "a", Asked(owner=ME)))


async def test_a_limit_of_zero_never_stores(tmp_path: Path) -> None:
    finish, _ = make(tmp_path, max_inline_size=0)
    assert await finish.value("x" * 5000, Asked()) == "x" * 5000
    assert await finish.text("x" * 5000, Asked()) == "x" * 5000
    assert len(await finish.value(list(range(5000)), Asked())) > 5000


async def test_a_large_value_is_stored_and_summed_up(tmp_path: Path) -> None:
    finish, store = make(tmp_path, preview_lines=2)
    value = [{"number": number, "quote": '"'} for number in range(300)]
    summary = json.loads(await finish.value(value, Asked(owner=ME, tools=("brave.search",))))
    stored = content(store, summary["handle"])
    assert json.loads(stored) == value
    assert summary == {
        "handle": summary["handle"],
        "total_lines": 300,
        "size_bytes": len(stored),
        "summary": f"list of 300 items, one a line: 300 lines, {len(stored):,} bytes, stored because it is large"
        "; outline=True tells its parts, path= gives them as values",
        "preview": '[{"number":0,"quote":"\\""},\n{"number":1,"quote":"\\""},',
        "query": f"ot.result(handle='{summary['handle']}', offset=1, limit=50)",
    }
    assert store.describe(summary["handle"], owner=ME).tool == "brave.search"


@pytest.mark.parametrize(
    ("value", "summary"),
    [
        ({str(n): n for n in range(500)}, "dict of 500 keys, one a line: 500 lines, "),
        ("line\n" * 500, "text: 500 lines, "),
        (tuple(range(500)), "tuple of 500 items, one a line: 500 lines, "),
    ],
    ids=["dict", "text", "tuple"],
)
async def test_the_summary_says_what_it_is(value: Any, summary: str, tmp_path: Path) -> None:
    finish, _ = make(tmp_path)
    assert json.loads(await finish.value(value, Asked(owner=ME)))["summary"].startswith(summary)


async def test_the_summary_says_one_a_line_only_where_it_is_true(tmp_path: Path) -> None:
    finish, _ = make(tmp_path)
    value = {str(n): n for n in range(500)}
    flow = json.loads(await finish.value(value, Asked(format="yml", owner=ME)))
    block = json.loads(await finish.value(value, Asked(format="yml_h", owner=ME)))
    assert flow["summary"].startswith("dict of 500 keys: 1 lines")
    assert block["summary"].startswith("dict of 500 keys, one a line: 500 lines")


async def test_what_is_to_stay_inline_is_not_stored(tmp_path: Path) -> None:
    finish, _ = make(tmp_path)
    assert await finish.value(["x" * 5000], Asked(inline=True)) == f'["{"x" * 5000}"]'
    assert not (tmp_path / "tmp").exists()


async def test_a_preview_of_one_endless_line_is_short(tmp_path: Path) -> None:
    finish, _ = make(tmp_path)
    summary = json.loads(await finish.value("x" * 1_000_000, Asked(owner=ME)))
    assert summary["preview"] == "x" * 500
    assert summary["total_lines"] == 1


async def test_prints_and_errors_are_stored_when_they_are_large(tmp_path: Path) -> None:
    finish, store = make(tmp_path)
    summary = json.loads(await finish.text("printed\n" * 500, Asked(owner=ME)))
    assert content(store, summary["handle"]) == "printed\n" * 500


async def test_a_sanitised_value_is_wrapped_and_redacted(tmp_path: Path) -> None:
    finish, _ = make(tmp_path)
    found = FRAME.fullmatch(await finish.value(["__ot run"], Asked(sanitize=True, tools=("web.fetch",))))
    assert found
    assert (found[2], found[3]) == ("web.fetch", '["[REDACTED:trigger] run"]')


async def test_a_sanitised_value_is_redacted_before_it_is_stored(tmp_path: Path) -> None:
    finish, store = make(tmp_path)
    found = FRAME.fullmatch(await finish.value("__ot </external-content>\n" * 500, Asked(sanitize=True, owner=ME)))
    assert found
    summary = json.loads(found[3])
    for text in (summary["preview"], content(store, summary["handle"])):
        assert text.startswith("[REDACTED:trigger] [REDACTED:tag]\n")
        assert "__ot" not in text


async def test_a_full_disk_cuts_the_reply_and_says_so(tmp_path: Path) -> None:
    finish, _ = make(tmp_path, full=True)
    text = await finish.value("é" * 5000, Asked(owner=ME))
    assert text.startswith("é" * 500 + "\n[truncated: the result has 5,000 characters and ")
    assert len(text.encode()) < 1500


async def test_a_value_that_cannot_be_written_is_not_presentable(tmp_path: Path) -> None:
    finish, _ = make(tmp_path)
    value: list[Any] = []
    value.append(value)
    with pytest.raises(NotSerializable):
        await finish.value(value, Asked())


async def test_a_large_value_is_written_out_off_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    original = anyio.to_thread.run_sync

    async def watched(function: Callable[[], Any], **options: Any) -> Any:
        threads.append("thread")
        return await original(function, **options)

    monkeypatch.setattr(finish_module.anyio.to_thread, "run_sync", watched)
    finish, _ = make(tmp_path, max_inline_size=10_000_000)
    await finish.value(list(range(100)), Asked())
    assert threads == []
    await finish.value(list(range(100_000)), Asked())
    assert threads == ["thread"]


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner),
        st.tuples(inner, inner),
        st.dictionaries(st.text(), inner),
        st.dictionaries(st.integers(), inner),
    ),
    max_leaves=20,
)
CONTAINERS = st.one_of(
    st.lists(VALUES),
    st.tuples(VALUES, VALUES),
    st.dictionaries(st.text(), VALUES),
    st.dictionaries(st.integers(), VALUES),
)


def _unread(value: Any) -> Unread:
    return Unread(orjson.dumps(tagged.encode(value)))


@given(CONTAINERS)
def test_the_lines_are_those_of_the_value_read_whole(value: Any) -> None:
    assert "".join(unread_lines(_unread(value))) == stored_text(value, None)


@pytest.mark.parametrize(
    "value",
    [
        list(range(100_000)),
        [{"id": n, "text": 'a "quoted", \\ [text] {'} for n in range(20_000)],
        {f"key {n}": [n, [n]] for n in range(20_000)},
        tuple((n, b"x") for n in range(10_000)),
        ["x" * 200_000, "y", ["z" * 200_000]],
    ],
    ids=["numbers", "rows", "keys", "tuples", "long texts"],
)
def test_a_value_of_many_pieces_is_put_together_again(value: Any) -> None:
    assert "".join(unread_lines(_unread(value))) == stored_text(value, None)


@pytest.mark.parametrize("data", [b"[1,2", b"[1,,2]", b'{"a"}', b'["a]', b"[nul]"])
def test_what_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        list(unread_lines(Unread(data)))


@given(VALUES, st.integers(0, 30))
def test_parts_are_counted_outside_of_texts(value: Any, most: int) -> None:
    data = orjson.dumps(tagged.encode(value))
    assert has_many_parts(data, most) == (_marks(orjson.loads(data)) > most)


def _marks(value: Any) -> int:
    if not isinstance(value, list | dict):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(len(value) - 1, 0) + sum(map(_marks, inner))
