"""Answers are broken between words, whatever pieces they come in."""

from __future__ import annotations

import pytest

from onetool_chat.cli.chat_words import ChatWords

CODE = '```python\ndef release(version: str) -> None:\n    """Publish it."""\n```'


def shown(text: str, width: int, size: int) -> str:
    words = ChatWords(width)
    return "".join(words.take(text[at : at + size]) for at in range(0, len(text), size)) + words.rest()


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_prose_is_broken_between_words(size: int) -> None:
    assert shown("one two three\n\n- four five six", 9, size) == "one two\nthree\n\n- four\nfive six"
    assert shown("  an indent stays", 80, size) == "  an indent stays"
    assert shown("a " + "x" * 20 + " b", 9, size) == f"a\n{'x' * 20} b", "the terminal breaks a word that fits nowhere"
    assert shown("日本語 日本語", 10, size) == "日本語\n日本語", "wide letters take two columns"


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_code_is_left_as_it_is(size: int) -> None:
    assert shown(f"{CODE}\nafter the code", 9, size) == f"{CODE}\nafter the\ncode"


def test_a_word_is_held_back_until_it_is_whole() -> None:
    words = ChatWords(9)
    assert [words.take("one tw"), words.take("o "), words.take("three"), words.rest()] == ["one", " two", "", "\nthree"]
