"""Has the shared server, where one runs, answer a command: without the imports that answering it here would take."""

from __future__ import annotations

import json
import os
import sys
from _socket import socket
from collections.abc import Sequence
from typing import Any

from ot.cli.exit_codes import BACKEND, FAILURE, INTERRUPTED
from ot.cli.terminal import echo
from ot.cli.terminal.printed_answers import print_answer, print_reply
from ot.relay.header import COMMAND, Header
from ot.relay.place import Unshared, find_place, why_switched_off
from ot.relay.reach import join_daemon

LENGTH_BYTES = 4
LOST = "the shared server ended before it had answered, and the effect of the command is not known"


def answered(arguments: Sequence[str]) -> bool:
    """Return False if the command is to be answered in this process, nothing done; else end with its exit code."""
    asked = parse_command(arguments)
    if asked is None or why_switched_off():
        return False
    as_json, save = asked.pop("as_json"), asked.pop("save")
    try:
        server = _join(asked)
    except (Unshared, OSError):
        return False
    if server is None:
        return False
    sys.exit(_print_result(server, as_json=as_json, save=save))


def _print_result(server: socket, *, as_json: bool, save: str) -> int:
    """Return the exit code, once the answer is printed."""
    try:
        said = _last_word(server)
    except ConnectionError:
        echo(f"onetool: {LOST}", err=True)
        return BACKEND
    except KeyboardInterrupt:
        return INTERRUPTED
    try:
        if "reply" in said:
            return print_reply(said["reply"], as_json=as_json, save=save)
        return print_answer(said["answer"], as_json=as_json)
    except BrokenPipeError:
        # Whoever read it has had enough; Python would complain once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE


def parse_command(arguments: Sequence[str]) -> dict[str, Any] | None:
    """Parse a simple command line; return None if it needs the full parser."""
    name, *rest = arguments
    save = ""
    if name == "run" and "--save" in rest[:-1]:
        at = rest.index("--save")
        save, rest = rest[at + 1], rest[:at] + rest[at + 2 :]
        if os.path.isfile(save):  # noqa: PTH113 - as below
            return None
    words = [word for word in rest if word not in ("--json", "--tokens", "--trust-project")]
    flags = [word for word in rest if word not in words]
    if any(word.startswith("-") for word in words) or len(set(flags)) < len(flags):
        return None
    as_json = "--json" in flags
    flags = [flag for flag in flags if flag != "--json"]
    asked = {"command": name, "words": words, "flags": flags, "as_json": as_json, "save": save}
    return asked if _is_plain(name, len(words), flags) else None


def _is_plain(name: str, count: int, flags: Sequence[str]) -> bool:
    known = {"run": ["--trust-project"], "list": ["--tokens"]}.get(name, [])
    counts = {"run": (1, 1), "list": (0, 1), "search": (1, sys.maxsize), "show": (1, 1)}
    least, most = counts[name]
    return least <= count <= most and all(flag in known for flag in flags)


def _join(asked: dict[str, Any]) -> socket | None:
    place = find_place()
    cwd = os.getcwdb()  # noqa: PTH109 - pathlib's import takes longer than everything here
    there = sys.stdin.isatty() and sys.stderr.isatty()
    argv = (COMMAND, json.dumps(asked | {"somebody_is_there": there}).encode())
    return join_daemon(place, Header(place.key, cwd, argv, dict(os.environb)))


def _last_word(server: socket) -> dict[str, Any]:
    """Return the server's answer; what it asks before is put to the person at the terminal."""
    while "question" in (said := _receive(server)):
        body = json.dumps(_answer_to(said["question"], said["seconds"])).encode()
        server.sendall(len(body).to_bytes(LENGTH_BYTES, "big") + body)
    return said


def _answer_to(question: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return the answer of the person at the terminal."""
    from dataclasses import asdict

    from ot.cli.terminal.event_loop import run_async
    from ot.cli.terminal.prompts import TerminalQuestion
    from ot.errors import CannotAsk
    from ot.execution.caller import Question

    try:
        return asdict(run_async(TerminalQuestion(seconds)(Question(**question))))
    except CannotAsk as error:
        return {"cannot": error.why}


def _receive(server: socket) -> dict[str, Any]:
    return json.loads(_exactly(server, int.from_bytes(_exactly(server, LENGTH_BYTES), "big")))


def _exactly(server: socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        if not (part := server.recv(count - len(parts))):
            raise ConnectionResetError("it closed the connection")
        parts += part
    return bytes(parts)
