"""CodeParser: asks the parser's process, and starts it anew when a file was its end."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from threading import Timer
from typing import Any, Self

PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); import code_parser; code_parser.main()"
MAX_ANSWER = 64 << 20


class ParserEnded(Exception):
    """The parser needed too much time or memory for a file."""


class CodeParser:
    """A process that parses files, one after the other."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._process: Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._end()

    def ask(self, request: dict[str, Any], seconds: float) -> Any:
        """Return the answer.

        Raises:
            ParserEnded: There was none within *seconds*, or the process ended over it.
            ValueError: The request cannot be answered for any file.
        """
        process = self._process = self._process or self._start()
        killer = Timer(seconds, process.kill)
        killer.start()
        try:
            line = self._exchange(process, json.dumps(request).encode() + b"\n")
        finally:
            killer.cancel()
        if not line.endswith(b"\n"):
            self._end()
            raise ParserEnded
        answer = json.loads(line)
        if "wrong" in answer:
            raise ValueError(answer["wrong"])
        return answer["value"]

    @staticmethod
    def _exchange(process: Popen[bytes], line: bytes) -> bytes:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except BrokenPipeError:
            return b""
        return process.stdout.readline(MAX_ANSWER)

    @staticmethod
    def _start() -> Popen[bytes]:
        command = [sys.executable, "-I", "-c", PROGRAM, str(Path(__file__).parent)]
        return Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}, cwd="/")

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
