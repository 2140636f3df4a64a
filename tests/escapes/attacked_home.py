"""AttackedHome: a user with secrets who has cloned a hostile directory, and works in it."""

from __future__ import annotations

import asyncio
import importlib
import io
import logging
import os
import resource
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from bed import write
from callers import asking
from escapes.hostile_files import MADE
from escapes.house import House
from escapes.repository_attack import Attack, Step
from ot.config.paths import Paths
from ot.entry import main
from ot.execution.backends import in_process
from ot.execution.caller import Answer, Question
from ot.workspace import Workspace

CANARY = "canary-7f3a"
LONGEST_SECONDS = 20
FAKE_SERVER = Path(__file__).parents[1] / "proxied" / "misbehaving_server.py"
USER = f"""\
engines: {{use: portable}}
policy: {{allow: ["guide.*"], ask: ["desk.*"], deny: ["github.*"]}}
aliases: {{lsr: file.list}}
snippets: {{mine: {{body: "'mine'"}}}}
servers:
  github: {{command: {sys.executable}, args: ["{FAKE_SERVER}"], cwd: /, env: {{GITHUB_TOKEN: "${{TOKEN}}"}}}}
"""
SECRETS = {
    ".onetool/secrets.yaml": f"TOKEN: {CANARY}-user\n",
    ".aws/credentials": f"[default]\naws_secret_access_key = {CANARY}-aws\nAWS_KEY={CANARY}-aws\n",
    ".bash_profile": "# the user's own\n",
    ".cursor/mcp.json": '{"mcpServers": {"desk": {"command": "desk", "env": {"DESK_TOKEN": "CANARY-desk"}}}}'.replace(
        "CANARY", CANARY
    ),
}

# On a busy machine this import alone takes longer than a step may.
importlib.import_module("ot.proxied.connection")


class TookTooLong(BaseException):
    """A step did not end by itself."""


class _Terminal(io.TextIOWrapper):
    """What a command takes for the user's terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        """All that was written."""
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode(errors="replace")


@dataclass
class AttackedHome:
    """The directories, and all that the user got to see."""

    house: House
    patch: pytest.MonkeyPatch
    port: int
    said: list[str] = field(default_factory=list[str])
    broke: list[str] = field(default_factory=list[str])
    """Commands that hung, or ended with a traceback."""

    @classmethod
    def build(cls, base: Path, attack: Attack, patch: pytest.MonkeyPatch, port: int) -> AttackedHome:
        """Lay out the user's files and the clone."""
        house = House(base / "home", base / attack.work)
        for path in (house.user, house.cwd, house.outside / "www", base / "mark", base / "bin"):
            path.mkdir(parents=True)
        # What opens a report in a browser.
        (base / "bin" / "xdg-open").symlink_to("/bin/true")
        # Threads that only wait for another call are not waited for.
        patch.setattr(in_process, "IDLE_SECONDS", 0.01)
        self = cls(house, patch, port)
        house.user_file(USER)
        for name, text in SECRETS.items():
            write(house.home / name, text)
        self.lay_out(house.home, attack.home)
        self.lay_out(house.cwd, attack.files)
        (house.outside / "www").chmod(0o755)
        for name, value in {"HOME": str(house.home), "MY_GH_TOKEN": f"{CANARY}-env", "COLUMNS": "300"}.items():
            patch.setenv(name, value)
        return self

    @property
    def marks(self) -> list[str]:
        """What hostile code has left behind; all of the corpus marks one directory."""
        return sorted(path.name for path in (self.house.home.parent / "mark").iterdir())

    def lay_out(self, root: Path, files: Mapping[str, Any]) -> None:
        """Make *files* below *root*: texts, links, pipes, and what only a program can make."""
        for name, given in files.items():
            path = root / self.filled(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            entry: Mapping[str, Any] = given if isinstance(given, Mapping) else {"text": given}
            if path.is_symlink() or path.is_file():
                path.unlink()
            match entry:
                case {"link": target}:
                    path.symlink_to(self.filled(target))
                case {"pipe": _}:
                    os.mkfifo(path)
                case {"folder": mode}:
                    path.mkdir()
                    path.chmod(mode)
                case {"hex": text}:
                    path.write_bytes(bytes.fromhex(text))
                case {"made": maker}:
                    MADE[maker](path, self.filled)
                case _:
                    path.write_bytes(self.filled(entry["text"]).encode(entry.get("encoding", "utf-8")))
                    path.chmod(entry.get("mode", 0o600))

    def filled(self, text: str) -> str:
        """Return *text* with the places of this home in it."""
        house = self.house
        places = {"HOME": house.home, "WORK": house.cwd, "OUTSIDE": house.outside, "MARK": house.home.parent / "mark"}
        words = {**places, "PYTHON": sys.executable, "PORT": self.port, "FAKE": FAKE_SERVER}
        for word, value in words.items():
            text = text.replace(f"@{word}@", str(value))
        for size in (95, 400, 20000):
            text = text.replace(f"@{size} BLANKS@", " " * size)
        return text

    # ---------------------------------------------------------------- what the user does

    def carry_out(self, step: Step) -> None:
        """Do one thing, and keep what it showed."""
        match step:
            case str():
                self._command(*map(self.filled, shlex.split(step)))
            case {"run": code}:
                self._command("run", self.filled(code))
            case {"pull": files}:
                self.lay_out(self.house.cwd, files)
            case {"asked": code}:
                self._bounded(str(step), lambda: self._asked(self.filled(code)))
            case {"process": words}:
                ended = self.house.typed(*shlex.split(words), PATH=str(self.house.home.parent / "bin"))
                self.said += [ended.stdout, ended.stderr]
            case {"serve": codes}:
                self._bounded(str(step), lambda: self._serve([self.filled(code) for code in codes]), seconds=60)
            case _:
                raise ValueError(f"there is no such step: {step}")

    def _command(self, *arguments: str) -> None:
        with self.patch.context() as patch, _loggers_kept():
            patch.chdir(self.house.cwd)
            patch.setattr(sys, "argv", ["onetool", *arguments])
            patch.setattr(sys, "stdin", io.StringIO())
            patch.setattr(sys, "path", list(sys.path))
            self._bounded(" ".join(arguments), main)

    def _asked(self, code: str) -> None:
        async def no(question: Question) -> Answer:
            self.said.append(question.message)
            return Answer("accept", {"decision": "deny"})

        async def run() -> None:
            app = Workspace.alone(Paths.of(self.house.cwd, self.house.user))
            try:
                reply = await app.run(code, asking(no))
                self.said.extend(reply.texts)
            finally:
                await app.aclose()

        asyncio.run(run())

    def _serve(self, codes: list[str]) -> None:
        environment = {"PYTHONSAFEPATH": "1"}
        with self.house.stdio(env=environment) as server:
            self.said += [server.run(code).text for code in codes]
            server.close()
            self.said.append(server.stderr_text())

    def _bounded(self, what: str, act: Callable[[], None], seconds: float = 0.0) -> None:
        out, err = _Terminal(), _Terminal()
        known = threading.enumerate()
        try:
            with _deadline(seconds or LONGEST_SECONDS), redirect_stdout(out), redirect_stderr(err):
                act()
        except SystemExit:
            pass
        except TookTooLong:
            self.broke.append(f"{what} did not end")
        except BaseException:  # noqa: BLE001 - whatever leaves the command is a traceback on the user's screen
            self.broke.append(f"{what} ended with a traceback: {traceback.format_exc()[-600:]}")
        for thread in threading.enumerate():
            if thread not in known:
                thread.join(LONGEST_SECONDS)  # what was begun counts, though nobody waits for it
        self.said += [out.text, err.text]


@contextmanager
def _deadline(seconds: float) -> Generator[None]:
    main_thread = threading.get_ident()

    def late(number: int, frame: FrameType | None) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGUSR1, late)
    timer = threading.Timer(seconds, lambda: signal.pthread_kill(main_thread, signal.SIGUSR1))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGUSR1, before)


@contextmanager
def _loggers_kept() -> Generator[None]:
    kept = [(logging.getLogger(name), logging.getLogger(name).__dict__.copy()) for name in ("ot", "ot_tools")]
    try:
        yield
    finally:
        for logger, state in kept:
            logger.__dict__.update(state)


@contextmanager
def memory_of(megabytes: int) -> Generator[None]:
    """Let the block take no more than so much memory beside what there is; 0 is no limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    if megabytes:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (megabytes << 20), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
