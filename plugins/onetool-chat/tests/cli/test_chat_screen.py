"""The terminal of a chat: its command, what is shown of replies and calls, and the line that is typed."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from cli.command import interruptible
from onetool_chat.chat_client import ToolCall, Usage
from onetool_chat.chat_tools import ToolAnswer
from onetool_chat.cli.chat_commands import history_in
from onetool_chat.cli.chat_screen import ChatScreen
from onetool_chat.cli.chat_words import ChatWords
from onetool_chat.conversation import ChatAnswer
from ot.errors import ChatError
from ot.execution.caller import Answer, AskUser, Question
from pace import PATIENCE

pytestmark = pytest.mark.anyio

CALL = ToolCall("1", "lamp_switch", {"room": "hall"})
DONE = ToolAnswer("done")


def hidden(text: str) -> str:
    return text.replace("hunter2", "[secret]")


async def test_nothing_is_printed_onto_a_question_that_waits(capsys: pytest.CaptureFixture[str]) -> None:
    screen = ChatScreen(str)

    async def ask(question: Question) -> Answer:
        screen.note_call(CALL, DONE, 0.1)
        screen.take_text("words\n")
        assert capsys.readouterr().out == ""
        return Answer("accept")

    screen.calling(CALL)
    assert (await screen.alone(ask)(Question("Allow?", {}))).action == "accept"
    shown = capsys.readouterr().out
    assert shown.index("✓ lamp_switch") < shown.index("words")


def test_a_program_is_shown_as_a_whole_and_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    screen, lines = ChatScreen(hidden), [f"value_{number} = {number}" for number in range(40)]
    screen.calling(ToolCall("1", "run", {"command": "\n".join([*lines, "print('hunter2')"])}))
    shown = capsys.readouterr().out
    assert all(f"    {line}\n" in shown for line in lines)
    assert "print('[secret]')" in shown


def test_a_call_is_one_line_with_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    screen = ChatScreen(str)
    screen.calling(CALL)
    screen.note_call(CALL, DONE, 0.12)
    screen.calling(CALL)
    screen.note_call(CALL, ToolAnswer("no such\nroom \U0001f469\u200d\U0001f4bb", is_error=True), 1.0)
    assert capsys.readouterr().out.splitlines() == [
        '✓ lamp_switch {"room": "hall"} · 0.1 s, 4 characters',
        '✗ lamp_switch {"room": "hall"} · 1.0 s: no such room \U0001f469\u200d\U0001f4bb',
    ]


async def test_the_time_of_a_call_is_without_the_time_that_its_question_waits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen = ChatScreen(str)
    other = ToolCall("2", "lamp_switch", {"room": "attic"})

    async def ask(question: Question) -> Answer:
        await asyncio.sleep(0.3)
        return Answer("accept")

    async def call(which: ToolCall, asks: bool) -> None:
        started = time.monotonic()
        screen.calling(which)
        if asks:
            # As a run does it: in a task of its own.
            await asyncio.create_task(_asked(screen, ask))
        else:
            await asyncio.sleep(0.3)
        screen.note_call(which, DONE, time.monotonic() - started)

    await asyncio.gather(call(CALL, True), call(other, False))
    shown = capsys.readouterr().out.splitlines()
    times = {line.split('"')[3]: float(line.split(" · ")[1].split()[0]) for line in shown}
    assert times["hall"] < 0.3 <= times["attic"]


async def _asked(screen: ChatScreen, ask: AskUser) -> None:
    await screen.alone(ask)(Question("Allow?", {}))


def test_programs_that_run_at_the_same_time_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    screen = ChatScreen(str)
    first, second = (ToolCall(id, "run", {"command": id}) for id in ("a", "b"))
    screen.calling(first)
    screen.calling(second)
    screen.note_call(second, DONE, 0.1)
    screen.note_call(first, DONE, 0.2)
    assert capsys.readouterr().out.splitlines() == [
        "→ run",
        "    a",
        "→ run (2)",
        "    b",
        "✓ run (2) · 0.1 s, 4 characters",
        "✓ run · 0.2 s, 4 characters",
    ]


async def test_questions_of_tools_are_asked_one_after_the_other() -> None:
    waiting: list[str] = []
    answered = asyncio.Event()

    async def ask(question: Question) -> Answer:
        waiting.append(question.message)
        await answered.wait()
        return Answer("accept")

    alone = ChatScreen(str).alone(ask)
    tasks = [asyncio.ensure_future(alone(Question(message, {}))) for message in ("first", "second")]
    for _ in range(5):
        await asyncio.sleep(0)
    assert waiting == ["first"]
    answered.set()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*tasks)
    assert waiting == ["first", "second"]


def test_there_is_a_sign_of_life_while_the_model_thinks_and_nothing_of_it_remains(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")  # as at a terminal
    screen = ChatScreen(str)
    screen.begin()
    screen.take_text("Hello\n")
    before, erased, after = capsys.readouterr().out.rpartition("\x1b[2K")
    assert "thinking" in before and erased
    assert after.endswith("Hello\n") and "thinking" not in after


def test_what_the_model_forgot_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    screen = ChatScreen(str)
    screen.forgot(2, 0)
    screen.forgot(0, 1)
    assert capsys.readouterr().out.splitlines() == [
        "the conversation grew too long: the model has forgotten the oldest 2 questions",
        "the conversation grew too long: the model has forgotten all but the beginning of 1 tool answer",
    ]


def test_an_answer_ends_with_what_it_and_the_conversation_cost(capsys: pytest.CaptureFixture[str]) -> None:
    screen = ChatScreen(str)
    screen.begin()
    screen.take_text("Hello")
    screen.end(ChatAnswer("Hello", Usage(1200, 5), 1, "length"), Usage(3000, 50))
    first, last = capsys.readouterr().out.splitlines()
    assert first == "Hello"
    assert "1,200 tokens read, 5 written · in all 3,000 tokens read, 50 written" in last
    assert last.endswith("cut off at chat.max_tokens")


def test_a_server_that_counts_no_tokens_is_not_said_to_have_used_none(capsys: pytest.CaptureFixture[str]) -> None:
    screen = ChatScreen(str)
    screen.end(ChatAnswer("Hello", Usage(), 1, "stop"), Usage())
    assert "no tokens reported" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not a kept conversation"),
        ("[]", "not a kept conversation"),
        ('{"provider": "ollama", "history": "x"}', "not a kept conversation"),
        ('{"provider": "ollama", "history": [{"role": "user"}]}', "not a kept conversation"),
        ('{"provider": "openai", "history": []}', "continue it with onetool chat --provider openai"),
    ],
)
def test_a_file_that_cannot_go_on_here_is_refused(text: str, why: str) -> None:
    with pytest.raises(ChatError, match=why):
        history_in(text, "ollama")


def test_a_saved_conversation_is_resumed() -> None:
    text = '{"provider": "ollama", "history": [{"role": "user", "content": "hi"}]}'
    assert history_in(text, "ollama") == [{"role": "user", "content": "hi"}]


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


pytest.importorskip("readline")

# The hook is called between the prompt and the wait for a key. It is no Python function, so that Python does not look
# for signals before it waits: what a signal of that very moment meets.
INTERRUPTED = """
import ctypes, functools, readline, signal
from onetool_chat.cli.question_line import prompt_line
readline.set_pre_input_hook(functools.partial(getattr(ctypes.CDLL(None), "raise"), signal.SIGINT))
try:
    prompt_line("> ")
except KeyboardInterrupt:
    print("heard", signal.getsignal(signal.SIGALRM) is signal.SIG_DFL)
"""
TYPED = """
from onetool_chat.cli.question_line import LOOK_SECONDS, prompt_line
print("typed:", prompt_line(f"{LOOK_SECONDS} > "))
"""


class Typist:
    """A program at a terminal of its own."""

    def __init__(self, program: str) -> None:
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            interruptible([sys.executable, "-c", program]),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._shown = ""

    def until(self, words: str, seconds: float = 20.0) -> str:
        """Return what is shown until *words* come."""
        end = time.monotonic() + seconds
        while words not in self._shown:
            ready, _, _ = select.select([self._master], [], [], max(end - time.monotonic(), 0))
            assert ready, f"{words!r} did not come: {self._shown}"
            self._shown += os.read(self._master, 4096).decode()
        return self._shown

    def type(self, keys: str) -> None:
        """Press some keys."""
        os.write(self._master, keys.encode())

    def close(self) -> None:
        """End it."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(10)
        os.close(self._master)


def test_an_interrupt_that_comes_before_the_wait_for_a_key_is_heard() -> None:
    typist = Typist(INTERRUPTED)
    try:
        assert "heard True" in typist.until("heard True")
    finally:
        typist.close()


def test_a_line_that_is_typed_slowly_comes_whole() -> None:
    typist = Typist(TYPED)
    try:
        typist.until(" > ")
        for keys in ("ab", "cé", "d\n"):
            # Longer than the pause between two looks for signals.
            assert not select.select([], [], [], 0.5)[0]
            typist.type(keys)
        assert "typed: abcéd" in typist.until("typed: abcéd")
    finally:
        typist.close()
