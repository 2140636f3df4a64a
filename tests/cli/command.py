"""Runs ``onetool`` for tests: in this process, through the real entry, or as a process of its own."""

from __future__ import annotations

import gc
import io
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from ot import hooks
from ot.entry import main
from ot.logs import LOGGERS, end_logs


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


@dataclass
class OneTool:
    """The command, called in *cwd*."""

    cwd: Path
    home: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    @property
    def user(self) -> Path:
        return self.home / ".onetool"

    @property
    def project(self) -> Path:
        return self.cwd / ".onetool"

    def __call__(self, *arguments: str, stdin: str = "") -> Ended:
        """Run in this process: quick, and everything but the process's own border is the real thing."""
        return self.call(main, "onetool", *arguments, stdin=stdin)

    def call(self, program: Callable[[], None], *words: str, stdin: str = "") -> Ended:
        """Run *program*, called by these *words*, in this process."""
        with self.monkeypatch.context() as patch, keep_process():
            patch.chdir(self.cwd)
            patch.setattr(sys, "argv", list(words))
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            patch.setattr(sys, "path", list(sys.path))
            patch.setenv("PYDANTIC_DISABLE_PLUGINS", "__all__")  # as the entry would, which nothing would take back
            try:
                program()
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        out, err = self.capsys.readouterr()
        return Ended(code, out, err)

    def process(self, *arguments: str, stdin: str = "", **environment: str) -> Ended:
        """Run as a user would, in a process of its own."""
        ended = subprocess.run(
            [Path(sys.executable).with_name("onetool"), *arguments],
            input=stdin, capture_output=True, text=True, timeout=60, check=False,
            cwd=self.cwd, env={**os.environ, **environment},
        )  # fmt: skip
        return Ended(ended.returncode, ended.stdout, ended.stderr)


@contextmanager
def keep_process() -> Generator[None]:
    """Leave the loggers and the collector of garbage as they were: a command sets them up for a process of its own."""
    loggers = [logging.getLogger(name) for name in (*LOGGERS, *hooks.packages())]
    kept = [(logger, logger.__dict__ | {"handlers": list(logger.handlers)}) for logger in loggers]
    was_enabled, thresholds = gc.isenabled(), gc.get_threshold()
    try:
        yield
    finally:
        end_logs()
        for logger, state in kept:
            logger.__dict__.update(state)
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        (gc.enable if was_enabled else gc.disable)()


def interruptible(command: Sequence[str]) -> list[str]:
    """Return *command* so that it hears Ctrl-C and a hangup, also where the tests ignore them, as nohup does."""
    hear = (
        "import os, signal, sys\n"
        "for number in signal.SIGINT, signal.SIGHUP: signal.signal(number, signal.SIG_DFL)\n"
        "os.execvp(sys.argv[1], sys.argv[1:])"
    )
    return [sys.executable, "-I", "-S", "-c", hear, *command]
