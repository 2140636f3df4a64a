"""What a run gives back: values, prints and blocks of tools, all bounded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.runtime.engines.engine import Engine
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.failure_text import MAX_KEPT_CHARS, MOST_TOOLS, ReturnedValues
from ot.runtime.print_capture import PrintCapture
from ot.runtime.reply import MOST_BLOCKS, MOST_BYTES, MOST_WAITING_BYTES, ReplyBlocks
from ot_sdk.redaction import redact_block
from run_app import error_of, running_app, value_of

PACK = '''
    def rows() -> list:
        """List rows."""
        return [{"path": "a", "size": 1}]

    def none() -> list:
        """List nothing."""
        return []
'''
TEXTS = '''
    def one() -> str:
        """Answer as servers do."""
        return ' {"city": "Oslo", "tags": ["a"]}'

    def many() -> str:
        """Answer with a list."""
        return '[{"id": 1}, {"id": 2}]'

    def table() -> dict:
        """Answer with a table."""
        return {"columns": ["n"], "rows": [{"n": 1}, {"n": 2}], "more": False}

    def echo(value) -> object:
        """Return what was given."""
        return value

    def prose() -> str:
        """Answer with what only begins like JSON."""
        return "[1] is a note"
'''
ENGINES: dict[str, Callable[[], Engine]] = {"portable": PortableEngine, "exact": lambda: ExactEngine(ready=1)}
SHAPE = "shop.rows() returned list[{path: str, size: int}]"


@pytest.fixture(params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "exact" and ExactEngine.missing_here():
        pytest.skip(ExactEngine.missing_here())
    return ENGINES[request.param]()


@pytest.mark.anyio
async def test_guessed_keys_attributes_and_places_are_answered_with_the_shape(tmp_path: Path, engine: Engine) -> None:
    async with running_app(tmp_path, {"shop": PACK}, engine=engine) as app:
        for use in ("[r['name'] for r in rows]", "rows[0].name", "rows['items']", "rows[5]"):
            text = error_of(await app.run(f"rows = shop.rows()\n{use}"))
            assert text.endswith(SHAPE), text
        assert error_of(await app.run("shop.none()[0]")).endswith("shop.none() returned an empty list")


@pytest.mark.anyio
async def test_json_that_came_as_text_is_also_read_by_its_keys(tmp_path: Path) -> None:
    if ExactEngine.missing_here():
        pytest.skip(ExactEngine.missing_here())
    async with running_app(tmp_path, {"shop": TEXTS}, engine=ExactEngine(ready=1)) as app:
        for use in ("r['city']", "r.get('city')", "dict(r.items())['city']", "__import__('json').loads(r)['city']"):
            assert value_of(await app.run(f"r = shop.one()\n{use}")) == "Oslo"
        assert value_of(await app.run("r = shop.many()\n[r[0]['id'], r[-1]['id'], r[0], r[:2], len(r)]")) == (
            '[1,2,"[","[{",22]'
        )
        assert value_of(await app.run("r = shop.one()\n[isinstance(r, str), r == str(r), type(r + '')]")) == (
            "[true,true,\"<class 'str'>\"]"
        )
        assert value_of(await app.run("shop.one()")).startswith(' {"city"')
        assert "'size'" in error_of(await app.run("shop.one()['size']"))
        for wrong in ("['a']", "[0]['a']", ".get('a')", ".size"):
            assert "Error" in error_of(await app.run(f"shop.prose(){wrong}"))


@pytest.mark.anyio
async def test_a_table_is_a_plain_dict(tmp_path: Path) -> None:
    if ExactEngine.missing_here():
        pytest.skip(ExactEngine.missing_here())
    async with running_app(tmp_path, {"shop": TEXTS}, engine=ExactEngine(ready=1)) as app:
        assert value_of(await app.run("[*shop.table()]")) == '["columns","rows","more"]'


@pytest.mark.anyio
async def test_on_json_that_came_as_text_the_error_gives_the_words_to_write(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"shop": TEXTS}, engine=PortableEngine()) as app:
        said = error_of(await app.run("r = shop.one()\nr['city']"))
        assert said.endswith(
            "shop.one() returned str holding JSON {city: str, tags: list[str]}: read it by json.loads(...)"
        )
        assert value_of(await app.run("import json\njson.loads(shop.one())['city']")) == "Oslo"


@pytest.mark.anyio
async def test_errors_that_say_what_to_do_stay_as_they_are(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"shop": PACK}) as app:
        for command in ("shop.rows(wrong=1)", "shop.nothing()", "{}['x']"):
            assert "returned" not in error_of(await app.run(command))
        assert "returned" not in error_of(await app.run("shop.rows()\n1 / 0"))


@pytest.mark.anyio
async def test_a_variable_of_an_earlier_run_is_answered_with_the_session(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"shop": PACK}) as app:
        assert value_of(await app.run("rows = shop.rows()\nlen(rows)")) == "1"
        text = error_of(await app.run("rows[0]"))
        assert 'session="work"' in text
        assert "'rows' is from an earlier run" in text
        assert "session=" not in error_of(await app.run("other[0]"))
        assert "session=" not in error_of(await app.run("later[0]\nlater = 1"))


@pytest.mark.anyio
async def test_a_group_of_exceptions_shows_its_causes(tmp_path: Path) -> None:
    if ExactEngine.missing_here():
        pytest.skip(ExactEngine.missing_here())
    async with running_app(tmp_path, {"shop": PACK}, engine=ExactEngine(ready=1)) as app:
        command = "raise ExceptionGroup('two', [KeyError('a'), ExceptionGroup('in', [ValueError('b')])])"
        text = error_of(await app.run(command))
        for words in ("two (2 sub-exceptions)", "- KeyError: 'a'", "- ValueError: b"):
            assert words in text


def test_only_the_latest_tools_are_kept_and_of_large_values_the_shape() -> None:
    values = ReturnedValues()
    for number in range(MOST_TOOLS + 1):
        values.note(f"a.t{number}", {"n": number}, 10)
    assert values.hint("KeyError", "'x'", "a.t0()['x']").startswith(f"a.t{MOST_TOOLS}() returned {{n: int}}")
    values.note("a.large", {"k": "x"}, MAX_KEPT_CHARS + 1)
    assert values.hint("KeyError", "'x'", "").startswith("a.large() returned {k: str}")
    assert values.hint("ZeroDivisionError", "division by zero", "") == ""


@given(st.lists(st.text(max_size=20)), st.integers(0, 100))
def test_no_more_than_the_cap_is_kept_and_every_dropped_character_is_counted(parts: list[str], cap: int) -> None:
    capture = PrintCapture(cap)
    for part in parts:
        capture("stdout", part)
    whole = "".join(parts)
    kept, _, mark = capture.text().partition("\n[print output truncated: ")
    if not mark:
        assert whole == capture.text()
        return
    assert whole.startswith(kept)
    assert len(kept.encode()) <= cap
    assert mark == f"{len(whole) - len(kept):,} more characters]"


def test_both_streams_are_kept_in_order() -> None:
    capture = PrintCapture(100)
    capture("stdout", "a")
    capture("stderr", "b")
    capture("stdout", "c")
    assert capture.text() == "abc"


def image(size: int) -> dict[str, Any]:
    return {"type": "image", "data": "A" * size, "mimeType": "image/png"}


def test_blocks_are_bounded_by_number() -> None:
    blocks = ReplyBlocks()
    for _ in range(MOST_BLOCKS + 1):
        blocks.add(image(10))
    assert len(blocks.blocks) == MOST_BLOCKS
    assert blocks.note.startswith("note: 1 part of")


def test_blocks_are_bounded_by_size_and_a_small_one_still_fits_after_a_large_one_did_not() -> None:
    blocks = ReplyBlocks()
    for size in (MOST_BYTES - 1000, 2000, 10):
        blocks.add(image(size))
    assert [len(block["data"]) for block in blocks.blocks] == [MOST_BYTES - 1000, 10]


def test_a_block_waits_until_a_value_names_it() -> None:
    blocks = ReplyBlocks()
    blocks.keep(image(10), "a")
    blocks.keep(image(20), "b")
    assert blocks.blocks == []
    assert blocks.show({"rows": [{"block": "b"}, {"block": 1}]})
    assert blocks.blocks == [image(20)]
    assert not blocks.show([{"block": "b"}, "a"])


def test_of_very_many_blocks_that_wait_the_oldest_make_room() -> None:
    blocks = ReplyBlocks()
    for number in range(5):
        blocks.keep(image(MOST_WAITING_BYTES // 4), str(number))
    assert [blocks.show({"block": str(number)}) for number in range(5)] == [False, False, True, True, True]


def test_meta_data_of_tools_beside_their_values_is_bounded() -> None:
    blocks = ReplyBlocks()
    for _ in range(1000):
        blocks.add_meta("a.b", {"text": "x" * 100})
    assert 0 < len(blocks.meta) < 400


def test_texts_are_redacted_and_encoded_data_is_left_alone() -> None:
    resource = {"uri": "mem://key", "text": "my key", "list": ["key"], "blob": "key"}
    block = {"type": "resource", "resource": resource, "data": "key", "n": 1}
    expected = {"uri": "mem://*", "text": "my *", "list": ["*"], "blob": "key"}
    found = redact_block(block, lambda text: text.replace("key", "*"))
    assert found == {"type": "resource", "resource": expected, "data": "*", "n": 1}
