"""Rows that a thread writes a little later."""

from __future__ import annotations

import threading

from ot.batches import Batches
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
    assert batches.flush(5)
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
    assert batches.flush(5)
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
    assert batches.flush(10)
    assert len(sink.rows) == 8000
    batches.close(5)
