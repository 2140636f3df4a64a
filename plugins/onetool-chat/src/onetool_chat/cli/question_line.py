"""What the person at the terminal types: the next line of a conversation."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import signal
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType

from ot.files.no_links import make_private

LOOK_SECONDS = 0.2


def question_reader(runner: asyncio.Runner, history: Path) -> Callable[[], str]:
    """Return a function that reads the next question, which may have several lines if the library is installed.

    Each call raises as ``prompt_line``.
    """
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    except ImportError:
        return lambda: prompt_line("\n> ")
    make_private(history.parent)
    history.touch(0o600)
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    session: PromptSession[str] = PromptSession(
        "\n> ", history=FileHistory(str(history)), key_bindings=keys, multiline=True, prompt_continuation="  "
    )
    # In the runner: what servers and tools send meanwhile is read.
    return lambda: runner.run(session.prompt_async()).strip()


def prompt_line(prompt: str) -> str:
    """Return what is typed after *prompt*; Ctrl-C is heard at any moment.

    Raises:
        KeyboardInterrupt: Ctrl-C was typed.
        EOFError: There is no more.
    """
    with contextlib.suppress(ImportError):  # Windows
        importlib.import_module("readline")  # being there, it gives input() a history and editing
    with _woken():
        return input(prompt).strip()


@contextlib.contextmanager
def _woken() -> Generator[None]:
    """Wake input() at intervals, so that it looks for signals.

    One that comes between the prompt and the wait for a key interrupts nothing, and would be heard with the next key.
    """
    if not hasattr(signal, "setitimer"):  # Windows
        yield
        return
    before = signal.signal(signal.SIGALRM, _nothing)
    signal.setitimer(signal.ITIMER_REAL, LOOK_SECONDS, LOOK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Take the signal: that it came is all that it is for."""
