"""onetool chat and onetool listen, as a user types them, with scripted models of both providers."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pytest

from chat.chat_desk import PROVIDERS, calls, text
from chat.wire_server import Scripted, WireServer, anthropic_calls, anthropic_text, serving_aside
from cli.command import OneTool, interruptible

PROMPT = ">"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
KEY = "sk-ant-secret-of-the-test"
OPENAI_KEY = "sk-openai-secret-of-the-test"


def configure(onetool: OneTool, wire: WireServer, **chat: object) -> None:
    onetool.user.mkdir(exist_ok=True)
    urls = {"anthropic_url": wire.url, "ollama_url": wire.url, "openai_url": wire.url}
    (onetool.user / "onetool.yaml").write_text(json.dumps({"chat": {**urls, **chat}}))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", OPENAI_KEY)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_one_question_is_answered_with_the_tool_run(onetool: OneTool, provider: str) -> None:
    program = {"command": "sum(range(10))"}
    with serving_aside(calls(provider, ("run", program)), text(provider, "It is ", "45.")) as wire:
        configure(onetool, wire)
        ended = onetool("chat", "--provider", provider, "what is the sum?")
    assert (ended.code, ended.out, ended.err) == (0, "It is 45.\n", "")
    told = wire.requests[0]["tools"][0]
    assert (told if provider == "anthropic" else told["function"])["name"] == "run"
    assert "45" in json.dumps(wire.requests[1]["messages"])
    assert (KEY in wire.headers[0]) == (provider == "anthropic")
    assert (OPENAI_KEY in wire.headers[0]) == (provider == "openai")


@pytest.mark.parametrize(
    ("is_terminal", "shown"), [(True, "a\\x1b]0;title\\x07 b\n"), (False, "a\x1b]0;title\x07 b\n")]
)
def test_an_answer_cannot_steer_the_terminal_that_it_is_printed_on(
    onetool: OneTool, monkeypatch: pytest.MonkeyPatch, is_terminal: bool, shown: str
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    with serving_aside(text("ollama", "a\x1b]0;title\x07 b")) as wire:
        configure(onetool, wire, provider="ollama")
        ended = onetool("chat", "hello")
    assert (ended.code, ended.out) == (0, shown)


def test_standard_input_is_one_question_and_json_tells_everything(onetool: OneTool) -> None:
    (onetool.cwd / "notes.txt").write_text("buy milk\n")
    wanted = calls("ollama", ("file_read", {"path": "notes.txt"}), ("file_read", {"path": "nothing"}))
    with serving_aside(wanted, text("ollama", "Milk.")) as wire:
        configure(onetool, wire, provider="ollama", model="small")
        ended = onetool("chat", "--packs", "file", "--json", stdin="what do I need?\n")
    assert ended.code == 0
    told = json.loads(ended.out)
    assert (told["answer"], told["turns"], told["model"]) == ("Milk.", 2, "small")
    assert told["usage"] == {"input_tokens": 20, "output_tokens": 10}
    assert sorted(call["is_error"] for call in told["calls"]) == [False, True]
    names = [tool["function"]["name"] for tool in wire.requests[0]["tools"]]
    # What a tool stores can be read, too.
    assert [name for name in names if not name.startswith("file_")] == ["ot_result"]


def test_a_server_that_was_never_asked_is_asked_for_its_tools(onetool: OneTool) -> None:
    with serving_aside(text("ollama", "Hello.")) as wire:
        configure(onetool, wire, provider="ollama")
        serve = "from mcp_guide.main import main; main()"
        settings = json.loads((onetool.user / "onetool.yaml").read_text())
        settings["servers"] = {"notes": {"command": sys.executable, "args": ["-c", serve]}}
        (onetool.user / "onetool.yaml").write_text(json.dumps(settings))
        ended = onetool("chat", "--packs", "notes", "hello")
    assert (ended.code, ended.out) == (0, "Hello.\n")
    assert any(tool["function"]["name"].startswith("notes_") for tool in wire.requests[0]["tools"])


def test_a_pack_that_cannot_be_offered_is_an_error_and_no_conversation_without_it(onetool: OneTool) -> None:
    with serving_aside(text("ollama", "Hello.")) as wire:
        configure(onetool, wire, provider="ollama")
        settings = json.loads((onetool.user / "onetool.yaml").read_text())
        settings["servers"] = {"notes": {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]}}
        (onetool.user / "onetool.yaml").write_text(json.dumps(settings))
        ended = onetool("chat", "--packs", "notes", "hello")
    assert ended.code == 1
    assert "notes cannot be offered" in ended.err
    assert not wire.requests


def test_the_log_goes_into_its_file_and_not_between_the_answers(onetool: OneTool) -> None:
    with serving_aside(calls("ollama", ("nothing_such", {})), text("ollama", "Sorry.")) as wire:
        configure(onetool, wire, provider="ollama")
        ended = onetool("chat", "hello")
    assert (ended.code, ended.out, ended.err) == (0, "Sorry.\n", "")
    assert "unknown tool: nothing_such" in (onetool.user / "logs" / "onetool.log").read_text()


@pytest.mark.parametrize("as_json", [False, True])
def test_a_refusal_is_told_without_the_key(onetool: OneTool, as_json: bool) -> None:
    body = json.dumps({"type": "error", "error": {"type": "authentication_error", "message": f"bad key {KEY}"}})
    with serving_aside(Scripted([body], 401, kind="application/json")) as wire:
        configure(onetool, wire)
        ended = onetool("chat", "hello", *(["--json"] if as_json else []))
    assert ended.code == 1
    shown = ended.out if as_json else ended.err
    assert KEY not in ended.out + ended.err
    assert "[secret:ANTHROPIC_API_KEY]" in shown and "is ANTHROPIC_API_KEY right?" in shown
    if as_json:
        assert json.loads(ended.out)["kind"] == "ChatRefused"


def test_a_missing_key_and_a_missing_pack_are_told(onetool: OneTool, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = onetool("chat", "--packs", "nope", "hello")
    assert (ended.code, "there is no pack 'nope'" in ended.err) == (3, True)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    ended = onetool("chat", "hello")
    assert ended.code == 1 and "put ANTHROPIC_API_KEY into the environment" in ended.err


def test_a_project_cannot_send_the_key_elsewhere(onetool: OneTool) -> None:
    onetool.project.mkdir()
    (onetool.project / "onetool.yaml").write_text('chat: {anthropic_url: "http://127.0.0.1:1"}\n')
    ended = onetool("chat", "--trust-project", "hello")
    assert ended.code == 1
    assert "chat may not be set by a project, only by your own configuration" in ended.err


def test_chat_without_a_question_is_a_usage_error(onetool: OneTool) -> None:
    ended = onetool("chat", stdin=" \n")
    assert (ended.code, "there is no question" in ended.err) == (2, True)


# ---------------------------------------------------------------- by voice


@pytest.mark.parametrize("as_json", [False, True])
def test_what_a_file_says_is_answered(onetool: OneTool, speech: Path, as_json: bool) -> None:
    script = [text("ollama", "You have many."), calls("ollama", ("run", {"command": "1 + 1"})), text("ollama", "On.")]
    with serving_aside(*script) as wire:
        configure(onetool, wire, provider="ollama")
        orders = "list my tools | turn on the light | turn off the light"
        ended = onetool("listen", "--orders", orders, str(speech), *["--json"] * as_json)
    said = [("list my tools", "You have many."), ("turn on the light", "On.")]
    plain = "".join(f"> {question}\n{answer}\n" for question, answer in said)
    rows = "".join(json.dumps({"question": one, "answer": other, "error": ""}) + "\n" for one, other in said)
    assert (ended.code, ended.out) == (0, rows if as_json else plain)


def test_a_voice_that_cannot_be_used_is_told(onetool: OneTool, tmp_path: Path) -> None:
    ended = onetool("listen", "--provider", "ollama", "--orders", "go", str(tmp_path / "nothing.wav"))
    assert (ended.code, "nothing.wav cannot be read as a WAV file" in ended.err) == (1, True)


def test_a_file_that_is_not_there_is_told_before_a_key_is_asked_for(onetool: OneTool) -> None:
    ended = onetool("listen", "--provider", "anthropic", "--orders", "go", "nothing.wav")
    assert ended.err.startswith("onetool: nothing.wav cannot be read as a WAV file: ")


# ---------------------------------------------------------------- at a terminal


class Terminal:
    """A command at a terminal of its own."""

    def __init__(self, onetool: OneTool, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        command = interruptible([str(Path(sys.executable).with_name("onetool")), *arguments])
        env = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "PROMPT_TOOLKIT_NO_CPR": "1"}
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, cwd=onetool.cwd, env=env, start_new_session=True
        )
        os.close(slave)
        self.shown = ""
        self._seen = 0

    def until(self, words: str, seconds: float = 60) -> str:
        """Return what is shown until *words* come, from where the last ones ended."""
        end, begun = time.monotonic() + seconds, self._seen
        while words not in self.shown[begun:]:
            ready, _, _ = select.select([self._master], [], [], max(end - time.monotonic(), 0))
            assert ready, f"{words!r} did not come: {self.shown[-2000:]}"
            try:
                self.shown += os.read(self._master, 65536).decode(errors="replace")
            except OSError:  # the command has ended
                raise AssertionError(f"ended before {words!r}: {self.shown[-2000:]}") from None
        self._seen = self.shown.index(words, begun) + len(words)
        return self.shown[begun : self._seen]

    def type(self, line: str) -> None:
        # As the key sends it; a terminal in its ordinary mode makes a newline of it.
        os.write(self._master, line.encode() + b"\r")

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def ended(self, seconds: float = 60) -> int:
        """Return the exit code, once nobody holds the terminal any more."""
        end = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([self._master], [], [], max(end - time.monotonic(), 0))
            assert ready, f"it did not end: {self.shown[-2000:]}"
            try:
                self.shown += os.read(self._master, 65536).decode(errors="replace")
            except OSError:  # nobody is at the other end
                return self.process.wait(30)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        os.close(self._master)


@contextmanager
def terminal(onetool: OneTool, *arguments: str) -> Generator[Terminal]:
    """Yield the command at a terminal, and end it."""
    opened = Terminal(onetool, *arguments)
    try:
        yield opened
    finally:
        opened.close()


def test_a_conversation_at_a_terminal_streams_shows_calls_and_can_be_stopped(onetool: OneTool) -> None:
    steering = "\x1b]0;title\x07"
    slow = anthropic_calls(("toolu_2", "run", {"command": "import asyncio\nwhile True:\n    await asyncio.sleep(1)"}))
    script = [
        anthropic_calls(("toolu_1", "run", {"command": "6 * 7"})),
        anthropic_text("It is ", steering, "42."),
        slow,
        anthropic_text("You stopped me."),
    ]
    with serving_aside(*script) as wire:
        configure(onetool, wire)
        with terminal(onetool, "chat", "--model", "scripted") as screen:
            assert "scripted with the tool run" in screen.until(PROMPT)
            screen.type("what is six times seven?")
            shown = COLOURS.sub("", screen.until("written"))
            assert "→ run" in shown and "6 * 7" in shown and "✓ run" in shown
            assert "It is \\x1b]0;title\\x0742." in shown and "\x1b]0;" not in shown
            screen.until(PROMPT)
            screen.type("wait for ever")
            screen.until("→ run")
            screen.interrupt()
            screen.until("stopped; Ctrl-C again leaves")
            screen.until(PROMPT)
            screen.type("what happened?")
            screen.until("You stopped me.")
            screen.until(PROMPT)
            screen.interrupt()
            screen.until("Ctrl-C again leaves")
            screen.until(PROMPT)
            screen.interrupt()
            assert screen.ended() == 0
    # The call that was stopped has its answer in the history.
    assert "cancelled; whether it took effect" in json.dumps(wire.requests[3]["messages"])


def test_commands_at_a_terminal_show_change_keep_and_resume(onetool: OneTool) -> None:
    script = [text("openai", "Blue it is."), text("openai", "It was blue.")]
    with serving_aside(*script) as wire:
        configure(onetool, wire, provider="openai", model="first")
        with terminal(onetool, "chat") as screen:
            screen.until("/help lists commands")
            screen.until(PROMPT)
            screen.type("my colour is blue")
            screen.until("in all 10 tokens read, 5 written")
            for typed, shown in [
                ("/help", "/resume [NAME]"),
                ("/tools", "run: "),
                ("/usage", "10 tokens read, 5 written"),
                ("/save colours", "/resume colours goes on with it"),
                ("/clear", "begins anew"),
                ("/model second", "the model is second"),
                ("/nonsense", "there is no /nonsense; /help lists"),
                ("/resume nothing", "kept are: colours"),
                ("/resume ../x", "a name has letters"),
                ("/resume", "colours goes on: 2 messages"),
            ]:
                screen.until(PROMPT)
                screen.type(typed)
                screen.until(shown)
            screen.until(PROMPT)
            screen.type("what was it?")
            screen.until("It was blue.")
            screen.until(PROMPT)
            screen.type("exit")
            assert screen.ended() == 0
    asked = wire.requests[1]
    system, *rest = [message["content"] for message in asked["messages"]]
    assert rest == ["my colour is blue", "Blue it is.", "what was it?"]
    assert asked["model"] == "second"
    assert str(onetool.cwd) in system and f"{date.today():%d %B %Y}" in system and "`run`" in system
    kept = onetool.user / "chats" / "colours.json"
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_pasted_text_of_several_lines_is_one_question_and_history_is_kept(onetool: OneTool) -> None:
    pytest.importorskip("prompt_toolkit")
    with serving_aside(text("ollama", "One.")) as wire:
        configure(onetool, wire, provider="ollama")
        with terminal(onetool, "chat") as screen:
            screen.until(PROMPT)
            screen.type("\x1b[200~first line\nsecond line\x1b[201~ and\x1b\rmore")
            screen.until("in all 10 tokens")
            screen.until(PROMPT)
            screen.type("exit")
            assert screen.ended() == 0
    assert [one["messages"][-1]["content"] for one in wire.requests] == ["first line\nsecond line and\nmore"]
    kept = onetool.user / "chats" / "questions"
    assert "second line" in kept.read_text() and kept.stat().st_mode & 0o777 == 0o600
