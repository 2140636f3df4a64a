"""Text of others shows what it holds, and no terminal obeys it."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.visible_text import printable, quote, visible, visible_json

any_text = st.text(st.characters(exclude_categories=())) | st.text("\x1b\x9b]52;c\x07\n\t\r\u202e\u2066\u2028\ud800a")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 日本\n\ttext", "plain ü 日本\n\ttext"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x1b]52;c;Zm9v\x07", "\\x1b]52;c;Zm9v\\x07"),
        ("\x9b31m\x90", "\\x9b31m\\x90"),
        ("a\rb", "a\\rb"),
        ("\u202egnp.exe\u2066\u200f", "\\u202egnp.exe\\u2066\\u200f"),
        ("\udc80", "\\udc80"),
        ("👨\u200d👩\u200d👧 ❤\ufe0f", "👨\u200d👩\u200d👧 ❤\ufe0f"),
    ],
)
def test_what_steers_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(any_text)
def test_nothing_is_left_that_steers_or_cannot_be_encoded(text: str) -> None:
    for shown in (visible(text), printable(text), quote(text)):
        shown.encode()
        assert all(unicodedata.category(mark) not in ("Cc", "Cs", "Zl", "Zp") or mark in "\n\t" for mark in shown)
        assert not any(unicodedata.bidirectional(mark) in ("RLO", "LRO", "RLI", "LRI", "FSI", "PDF") for mark in shown)
    assert "\n" not in printable(text) + quote(text)


@given(any_text)
def test_json_stays_the_same_json(text: str) -> None:
    given = json.dumps({text: [text]}, ensure_ascii=False)
    assert json.loads(visible_json(given)) == {text: [text]}
    assert visible(visible_json(given)) == visible_json(given)
