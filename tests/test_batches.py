"""What is bounded for the log: batches of entries, and values shown by beginning and size."""

from __future__ import annotations

import datetime
import threading
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.batches import Batches
from ot.brief_repr import MARGIN, brief_repr, brief_text, quote_text
from ot.log_span import SpanMessage, cut_arguments
from pace import PATIENCE


class Sink:
    """Keeps batches; closed, it refuses them."""

    def __init__(self, *, closed: bool = False) -> None:
        self.batches: list[list[int]] = []
        self.open = threading.Event()
        if not closed:
            self.open.set()
        self.refused = threading.Event()

    def write(self, rows: list[int]) -> bool:
        if not self.open.is_set():
            self.refused.set()
            return False
        self.batches.append(rows)
        return True

    @property
    def rows(self) -> list[int]:
        return [row for batch in self.batches for row in batch]


def test_what_is_added_is_written_in_order_and_together() -> None:
    sink = Sink()
    batches = Batches(sink.write, name="t", seconds=5)
    for number in range(1000):
        batches.add(number)
    assert batches.flush(PATIENCE)
    assert sink.rows == list(range(1000))
    assert len(sink.batches) == 1
    batches.close(5)


def test_rows_are_written_by_themselves_after_the_pause() -> None:
    written = threading.Event()

    def write(rows: list[int]) -> bool:
        written.set()
        return True

    batches = Batches(write, name="t", seconds=0.01)
    batches.add(1)
    assert written.wait(PATIENCE)
    batches.close(5)


def test_closing_writes_what_is_left_and_ends_the_thread() -> None:
    sink = Sink()
    batches = Batches(sink.write, name="ends-here", seconds=60)
    batches.add(1)
    batches.close(5)
    assert sink.rows == [1]
    assert "ends-here" not in {thread.name for thread in threading.enumerate()}


def test_what_is_refused_waits_bounded_and_the_rest_is_counted() -> None:
    sink = Sink(closed=True)
    batches = Batches(sink.write, name="t", seconds=0.01, most=100)
    for number in range(250):
        batches.add(number)
    assert sink.refused.wait(PATIENCE)
    assert (batches.waiting, batches.dropped) == (100, 150)
    sink.open.set()
    assert batches.flush(PATIENCE)
    assert sink.rows == list(range(100))
    batches.close(5)


def test_closing_gives_up_on_a_writer_that_refuses() -> None:
    sink = Sink(closed=True)
    batches = Batches(sink.write, name="t", seconds=0.01)
    batches.add(1)
    batches.close(5)
    assert (batches.waiting, batches.dropped) == (0, 1)


def test_nothing_is_started_before_the_first_row() -> None:
    batches = Batches(Sink().write, name="never", seconds=1)
    assert batches.flush(0.1)
    batches.close(1)
    assert "never" not in {thread.name for thread in threading.enumerate()}


def test_many_threads_may_add_at_once() -> None:
    sink = Sink()
    batches = Batches(sink.write, name="t", seconds=0.001)
    threads = [threading.Thread(target=lambda: [batches.add(n) for n in range(1000)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert batches.flush(PATIENCE)
    assert len(sink.rows) == 8000
    batches.close(5)


SECRET = "canary-4242-secret"


def redact(text: str) -> str:
    return text.replace(SECRET, "[secret:TOKEN]")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ([{"name": "Ada", "tags": ("a",), "n": None}], "[{'name': 'Ada', 'tags': ('a'), 'n': None}]"),
        ("x\n\x1b\u202e\ufe0f'", '"x\\n\\x1b\\u202e\\ufe0f\'"'),
        ("\ud800", "'\\ud800'"),
        (b"a\x00\xff", "b'a\\x00\\\\xff'"),
        (10**5000, "<a whole number of about 5,000 digits>"),
        ([10**5000], "[<a whole number of about 5,000 digits>]"),
        (-12, "-12"),
        (True, "True"),
        (1.5, "1.5"),
        (datetime.date(2026, 1, 2), "date('2026-01-02')"),
        (Decimal("1.5"), "Decimal('1.5')"),
        (Decimal("1" * 100_000), "<Decimal>"),
        ([[[[[[[[1]]]]]]]], "[[[[[[[… 1 more]]]]]]]"),
        ("y" * 300, f"'{'y' * 199}…' (300 characters)"),
    ],
    ids=[
        "records",
        "unseen",
        "half",
        "bytes",
        "number",
        "numbers",
        "negative",
        "bool",
        "float",
        "date",
        "decimal",
        "digits",
        "deep",
        "long",
    ],
)
def test_a_value_is_shown_on_one_line_about_as_python_writes_it(value: Any, shown: str) -> None:
    assert brief_repr(value, 200) == shown


@pytest.mark.parametrize(
    "value",
    [
        list(range(500_000)),
        {n: n for n in range(200_000)},
        "x" * 20_000_000,
        b"x" * 20_000_000,
        [["x" * 1_000_000] * 100] * 1000,
        10**300_000,
    ],
    ids=["list", "dict", "text", "bytes", "nested", "number"],
)
def test_the_work_is_that_of_what_is_shown(value: Any) -> None:
    tracemalloc.start()
    try:
        assert len(brief_repr(value, 200, redact)) < 400
        assert tracemalloc.get_traced_memory()[1] < 50 * MARGIN
    finally:
        tracemalloc.stop()


@given(st.integers(0, 40), st.integers(1, 60), st.booleans())
def test_a_secret_that_a_cut_would_halve_is_left_out_whole(before: int, most: int, long: bool) -> None:
    text = "." * before + SECRET * 3 + "x" * (5 * MARGIN * long)
    assert "canary" not in brief_text(text, most, redact)
    assert "canary" not in brief_repr([text, {text: text}], most, redact)


@pytest.mark.parametrize("place", range(190, 210))
def test_a_secret_across_the_end_of_what_is_looked_at_is_left_out_too(place: int) -> None:
    marks = SECRET * ((place + 3 * MARGIN) // len(SECRET))
    text = "." * (place % len(SECRET)) + marks
    assert not {SECRET[:size] for size in range(4, len(SECRET))} & set(brief_text(text, place, redact).split("]"))
    assert "canary" not in brief_text(text, place, redact)


def test_a_number_of_thousands_of_digits_can_be_logged() -> None:
    assert cut_arguments({"n": 10**5000}) == "n=<a whole number of about 5,000 digits>"
    fields = SpanMessage("ot.result", 0.1, "", "", {"offset": 10**5000, "limit": 5}).fields()
    assert fields["offset"] == "<a whole number of about 5,000 digits>"
    assert fields["limit"] == 5


@given(st.text(alphabet=st.characters(), max_size=400), st.integers(10, 200))
def test_a_quoted_text_is_one_plain_line_of_a_bounded_length_in_quotes(text: str, most: int) -> None:
    shown = quote_text(text, most)
    assert shown.isprintable()
    assert shown[0] == shown[-1] in ("'", '"')
    assert len(shown) <= 2 * most + 2
    assert "\u034f" not in shown


def test_letters_that_are_long_to_write_out_are_cut_further() -> None:
    assert quote_text("\U000e0001" * 500, 100) == "'" + r"\U000e0001" * 20 + "…'"
    assert quote_text("a" * 500, 100) == "'" + "a" * 99 + "…'"
