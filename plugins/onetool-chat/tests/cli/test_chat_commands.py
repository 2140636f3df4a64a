"""Conversations that are kept."""

from __future__ import annotations

import pytest

from onetool_chat.cli.chat_commands import history_in
from ot.errors import ChatError


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not a kept conversation"),
        ("[]", "not a kept conversation"),
        ('{"provider": "ollama", "history": "x"}', "not a kept conversation"),
        ('{"provider": "ollama", "history": [{"role": "user"}]}', "not a kept conversation"),
        ('{"provider": "openai", "history": []}', "start onetool chat --provider openai"),
    ],
)
def test_a_file_that_cannot_go_on_here_is_refused(text: str, why: str) -> None:
    with pytest.raises(ChatError, match=why):
        history_in(text, "ollama")


def test_a_kept_history_comes_back() -> None:
    text = '{"provider": "ollama", "history": [{"role": "user", "content": "hi"}]}'
    assert history_in(text, "ollama") == [{"role": "user", "content": "hi"}]
