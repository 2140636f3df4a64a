"""What a program prints is kept up to a cap, and what is dropped is counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ot.runtime.engines.engine import PrintCapture


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
