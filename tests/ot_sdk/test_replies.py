"""Replies of packs under test, and the headers and certificates of their requests."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime
from email.utils import format_datetime, formatdate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_tagged import VALUES, nested, shape

import ot_sdk
from ot_sdk import host, replies
from ot_sdk.errors import NotPlain, TooDeep
from ot_sdk.network import CERTIFICATE_FILES as FILES
from ot_sdk.network import CERTIFICATE_FOLDER as FOLDER
from ot_sdk.network import LONGEST, NamedCertificates, retry_seconds
from ot_sdk.replies import JsonPieces
from ot_sdk.tagged import MAX_DEPTH, TAG, Encoder, decode, encode
from ot_sdk.testing import Logged, Progressed, use

pytestmark = pytest.mark.anyio


def pieces(value: Any) -> list[bytes]:
    """Return the pieces of *value*."""
    return list(JsonPieces(Encoder).of(value))


def in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let values of a few bytes count as large ones."""
    monkeypatch.setattr(replies, "SLICE", 3)
    monkeypatch.setattr(replies, "BATCH", 20)


@given(VALUES)
@example(["a" * 50, ["b" * 50, {"c": "d" * 50, "e": [1, "f" * 50]}], ("g" * 50,), b"h" * 50])
@example([["ä" * 50, "\ud800" * 50], {"x": {1: "y" * 50}}, {TAG: "z" * 50}])
@example([[], {}, (), "", [[]], [{}], {"a": []}, {"a": {}}, [""] * 30, [None] * 30])
@example([1 << 70, 1 << 70, 3, "a,b", 1.5, [1, 2], 3] * 5)
def test_pieces_are_the_json_of_the_whole(value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        in_small_pieces(patch)
        cut = b"".join(pieces(value))
    whole = b"".join(pieces(value))
    assert shape(value) == shape(decode(json.loads(cut)))
    assert cut == whole


@given(VALUES)
def test_lines_are_elements_or_keys(value: Any) -> None:
    lines = b"".join(pieces([value, value])).removeprefix(b"[").removesuffix(b"]").split(b",\n")
    assert [shape(encode(value))] * 2 == [shape(json.loads(line)) for line in lines]
    lines = b"".join(pieces({"one": value, "two": value})).split(b"\n")
    assert [b'{"one"', b'"two"'] == [line.partition(b":")[0] for line in lines]


def test_no_piece_of_a_large_value_is_large() -> None:
    rows = [{"n": number, "text": "y" * 100} for number in range(20_000)]
    for value in (
        {"page": {"rows": rows}},
        [rows, [rows]],
        "x" * 5_000_000,
        [b"x" * 5_000_000],
        {"a": ["ä" * 5_000_000]},
    ):
        assert max(map(len, pieces(value))) < 2_000_000


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([0] * 5_000 + [object()], "[5000]"),
        ({"page": {"rows": ["x" * 9_000, {"key": object()}]}}, "['page']['rows'][1]['key']"),
        (iter([1, object()]), "[1]"),
    ],
)
def test_what_is_not_plain_is_refused_with_its_place(value: Any, path: str) -> None:
    with pytest.raises(NotPlain) as caught:
        pieces(value)
    assert path == caught.value.path


def test_depth_is_counted_through_all_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    in_small_pieces(monkeypatch)
    deepest: Any = "x" * 100
    for _ in range(MAX_DEPTH):
        deepest = [deepest, "y" * 100]
    assert deepest == decode(json.loads(b"".join(pieces(deepest))))
    with pytest.raises(TooDeep):
        pieces([deepest])
    with pytest.raises(TooDeep):
        pieces(nested(MAX_DEPTH + 1))


def test_an_iterator_inside_a_value_is_written_as_it_yields() -> None:
    taken: list[int] = []

    def rows() -> Any:
        for number in range(50_000):
            taken.append(number)
            yield "z" * 100

    stream = JsonPieces(Encoder).of({"rows": rows()})
    for _ in range(10):
        next(stream)
    assert 0 < len(taken) < 5_000


async def test_outside_of_a_worker_notes_go_nowhere_and_questions_say_what_to_write() -> None:
    ot_sdk.log("nobody listens")
    ot_sdk.progress(1, 2)
    for ask in (ot_sdk.config, lambda: ot_sdk.secret("TOKEN"), lambda: ot_sdk.call_tool("a.b")):
        with pytest.raises(ot_sdk.OutsideWorker, match=r"with ot_sdk.testing.use\(...\):"):
            ask()
    with pytest.raises(ot_sdk.OutsideWorker, match=r"ot_sdk.acall_tool\(\)"):
        await ot_sdk.acall_tool("a.b")
    with pytest.raises(ot_sdk.OutsideWorker, match=r"ot_sdk.llm works in a worker"):
        ot_sdk.llm.ask("Who?")
    with pytest.raises(ot_sdk.OutsideWorker, match=r"ot_sdk.llm works in a worker"):
        await ot_sdk.llm.aextract("Who?", {"type": "object"})


def test_a_test_gives_settings_and_secrets() -> None:
    with use(config={"timeout": 3}, secrets={"TOKEN": "value"}):
        assert {"timeout": 3} == ot_sdk.config()
        assert "value" == ot_sdk.secret("TOKEN").reveal()
        with pytest.raises(ot_sdk.SecretNotGranted, match=r'\{"secrets": \["OTHER"\]\}'):
            ot_sdk.secret("OTHER")
    with use(), pytest.raises(ot_sdk.NoConfig, match=r"use\(config=Config\(...\)\)"):
        ot_sdk.config()


def test_what_a_pack_logs_and_tells_is_collected() -> None:
    with use() as told:
        ot_sdk.log("fetched", level="warning", pages=3)
        ot_sdk.progress(1, 4, "a quarter")
    assert [Logged("warning", "fetched", {"pages": 3})] == told.logs
    assert [Progressed(1, 4, "a quarter")] == told.progressed


def test_a_level_that_does_not_exist_is_refused() -> None:
    with use(), pytest.raises(ValueError, match="there are debug, info, warning, error"):
        ot_sdk.log("text", level="warn")  # type: ignore[arg-type] - that is the mistake


async def test_other_tools_are_functions_or_values_of_the_test() -> None:
    async def later(name: str) -> str:
        return f"later {name}"

    with use(tools={"a.value": [1], "a.function": lambda name: f"hello {name}", "a.later": later}) as told:
        assert [1] == ot_sdk.call_tool("a.value")
        assert "hello you" == ot_sdk.call_tool("a.function", name="you")
        assert "hello you" == await ot_sdk.acall_tool("a.function", name="you")
        assert "later you" == await ot_sdk.acall_tool("a.later", name="you")
        with pytest.raises(TypeError, match=r"the test's a\.later is async"):
            ot_sdk.call_tool("a.later", name="you")
    assert ("a.value", {}) == told.called[0]
    assert ("a.function", {"name": "you"}) == told.called[1]


async def test_a_tool_of_the_test_that_fails_fails_as_it_would_through_the_server() -> None:
    def fail() -> None:
        raise KeyError("missing")

    async def fail_later() -> None:
        raise KeyError("missing")

    with use(tools={"a.fail": fail, "a.later": fail_later}):
        for name in ("a.fail", "a.later"):
            with pytest.raises(ot_sdk.ToolCallFailed) as caught:
                await ot_sdk.acall_tool(name)
            assert ("KeyError", "'missing'") == (caught.value.kind, caught.value.message)
            assert "KeyError: 'missing'" == str(caught.value)
        with pytest.raises(ot_sdk.ToolCallFailed, match=r"UnknownTool: the test gave no tool 'a\.none'"):
            ot_sdk.call_tool("a.none")


async def test_the_model_is_a_function_or_the_answer_of_the_test() -> None:
    with use(llm=lambda text: f"to {text}") as told:
        assert "to Who?" == ot_sdk.llm.ask("Who?")
        assert "to When?" == await ot_sdk.llm.aask("When?")
    assert ["Who?", "When?"] == told.asked
    with use(llm={"name": "Ada"}):
        assert {"name": "Ada"} == ot_sdk.llm.extract("Who?", {"type": "object"})
        assert {"name": "Ada"} == await ot_sdk.llm.aextract("Who?", {"type": "object"})
    with use(), pytest.raises(ot_sdk.ChatError, match=r"use\(llm=...\)"):
        ot_sdk.llm.ask("Who?")


def test_a_test_gives_the_key_of_the_call() -> None:
    assert "" == ot_sdk.idempotency_key()
    with use(key="run-1"):
        assert "run-1" == ot_sdk.idempotency_key()


def test_threads_of_a_tool_reach_the_same_host() -> None:
    seen: list[object] = []
    with use(config="settings"):
        thread = threading.Thread(target=lambda: seen.append(ot_sdk.config()))
        thread.start()
        thread.join()
    assert ["settings"] == seen


def test_what_one_test_gave_is_gone_for_the_next_even_when_it_failed() -> None:
    before = host.current()
    with pytest.raises(ZeroDivisionError), use(config=1), use(config=2):
        assert 2 == ot_sdk.config()
        raise ZeroDivisionError
    assert before is host.current()


def test_the_names_for_authors_are_these() -> None:
    expected = """ChatError NoConfig NotPlain OpenDirectory OutsideWorker SdkError Secret SecretNotGranted SettingsError
        ToolCallFailed acall_tool call_tool config idempotency_key image llm log open_directory open_file progress
        secret"""
    assert expected.split() == ot_sdk.__all__


def read(text: str) -> float | None:
    return retry_seconds({"retry-after": text})


def test_the_wait_is_seconds_or_a_date_and_at_most_a_day() -> None:
    assert [read(text) for text in ("7", " 0 ", "1.5", "2.", "31536000", "9" * 400)] == [7, 0, 1.5, 2, LONGEST, LONGEST]
    in_a_minute = time.time() + 60
    for text in (formatdate(in_a_minute, usegmt=True), time.asctime(time.gmtime(in_a_minute))):
        assert 30 < (read(text) or 0) <= 60
    assert retry_seconds({}) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "-1",
        "+1",
        "1e3",
        "inf",
        "nan",
        "0x10",
        "1_000",
        "²",
        "٣",
        "7 s",
        "Thu, \u0660\u0661 Jan 2026 0:0:0 GMT",
        f"Thu, 01 Jan 2026 0:0:0 +{9:9>21}",
    ],
)
def test_a_malformed_retry_after_is_ignored(text: str) -> None:
    assert read(text) is None


@given(st.text() | st.text(alphabet="0123456789 :,.+-GMTJanFri²") | st.from_regex(r"[A-Z][a-z]{2}, .*", fullmatch=True))
def test_whatever_the_header_says_the_wait_is_within_a_day_or_none(text: str) -> None:
    found = read(text)
    assert found is None or 0 <= found <= LONGEST


@given(st.floats(0, 1e12, allow_nan=False))
def test_a_number_of_seconds_is_read_as_it_was_written(seconds: float) -> None:
    text = f"{seconds:.3f}"
    assert read(text) == min(float(text), LONGEST)


@given(st.datetimes(datetime(1994, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))
def test_a_date_is_now_or_within_a_day_or_a_day_away(date: datetime) -> None:
    away = date.timestamp() - time.time()
    found = read(format_datetime(date, usegmt=True))
    assert found is not None
    assert abs(found - min(max(away, 0), LONGEST)) < 30


def test_the_header_is_read_in_this_one_place() -> None:
    sources = Path(ot_sdk.__file__).parents[1].rglob("*.py")
    reading = [file.name for file in sources if 'get("retry-after' in file.read_text(encoding="utf-8").lower()]
    assert reading == ["network.py"]


@pytest.mark.parametrize("name", FILES)
def test_each_variable_names_a_file_beside_the_directory(name: str) -> None:
    assert NamedCertificates.of({name: "/a.pem", FOLDER: "/certs"}) == (name, "/a.pem", "/certs")


def test_the_first_variable_that_is_set_counts() -> None:
    environ = {FILES[0]: "", FILES[1]: "/b.pem", FILES[2]: "/c.pem"}
    assert NamedCertificates.of(environ) == (FILES[1], "/b.pem", "")


def test_a_variable_for_a_file_may_name_a_directory(tmp_path: Path) -> None:
    assert NamedCertificates.of({FILES[1]: str(tmp_path)}) == (FILES[1], "", str(tmp_path))
    assert NamedCertificates.of({FILES[1]: str(tmp_path), FOLDER: "/certs"}) == (
        FILES[1],
        "",
        "/certs",
    )


def test_where_none_are_named_there_is_no_context() -> None:
    assert NamedCertificates.of({}).context() is None


def test_a_file_without_certificates_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(OSError, match="certificate"):
        NamedCertificates.of({FILES[0]: str(tmp_path / "ca.pem")}).context()
