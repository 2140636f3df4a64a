"""onetool answer: what runs ask, shown and answered by a person at a terminal."""

from __future__ import annotations

import json
import os
import socket
import stat
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import DENIED, NOT_FOUND
from ot.cli.terminal import columns, echo, echo_either, fail, pluralize
from ot.cli.terminal.options import AsJson
from ot.relay.place import QUESTIONS_ENDING, RUNTIME

if TYPE_CHECKING:
    from ot.execution.caller import Answer

ANSWER_SECONDS = 5.0
"""How long a server may take to tell what waits, or whether it takes an answer."""
MAX_PLACE = 60


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question that waits, and the connection on which it can be answered."""

    fields: dict[str, Any]
    server: socket.socket

    @property
    def code(self) -> str:
        """What names it."""
        return self.fields["code"]

    @property
    def tool(self) -> str:
        """The tool that asks first, or the first line of what is asked."""
        return self.fields["question"]["tool"] or self.fields["question"]["message"].partition("\n")[0]

    @property
    def whose(self) -> str:
        """Whose run asks."""
        from ot.brief_repr import quote_text

        run: str = self.fields["run"]
        return f"run {run}" if run else quote_text(self.fields["client"], MAX_PLACE)


def answer(
    code: Annotated[
        str, typer.Argument(metavar="CODE", help="The question's code, or the id of a run in the background.")
    ] = "",
    list_: Annotated[bool, typer.Option("--list", help="Show which questions wait, and answer none.")] = False,
    as_json: AsJson = False,
) -> None:
    """Answer what a run asks, in this terminal; without a code, the one question that waits."""
    with ExitStack() as connections:
        waiting = [asked for asked in find_questions(connections) if not code or _is_meant(asked, code)]
        if list_ or as_json:
            rows = [asked.fields for asked in waiting]
            lines = columns([_row(asked) for asked in waiting]) or ["no question waits"]
            echo_either(as_json, {"questions": rows}, lines)
        elif not waiting:
            fail(f"no question waits under '{code}'" if code else "no question waits", NOT_FOUND)
        elif len(waiting) > 1:
            echo(f"{pluralize(len(waiting), 'question')} wait: onetool answer CODE answers one.")
            for line in columns([_row(asked) for asked in waiting]):
                echo(line)
        else:
            answer_here(waiting[0])


def _is_meant(asked: AskedQuestion, code: str) -> bool:
    return asked.code == code.upper() or (bool(asked.fields["run"]) and asked.fields["run"] == code)


def _row(asked: AskedQuestion) -> tuple[str, ...]:
    return asked.code, asked.tool, asked.whose, asked.fields["directory"]


# ---------------------------------------------------------------- answering


def answer_here(asked: AskedQuestion) -> None:
    """Ask the person at this terminal, and send the answer; a failure ends the command."""
    from ot.cli.terminal.prompts import fit

    _require_terminal()
    given = _ask(asked.fields)
    if given.action == "cancel":
        fail("no answer was given: the question waits on", DENIED)
    said = {"code": asked.code, "action": given.action, "content": dict(given.content)}
    try:
        asked.server.sendall(json.dumps(said).encode() + b"\n")
    except OSError:
        fail("the server has ended, and the run with it: nothing was answered, and the call was not made")
    try:
        reply = _read_line(asked.server)
    except (OSError, ValueError):
        fail("the server did not say whether it took the answer: look what the run came to before you repeat it")
    if "refused" in reply:
        fail(str(reply["refused"]), DENIED)
    echo(fit(_how_it_goes_on(given, asked.fields["question"]["tool"])))


def _how_it_goes_on(given: Answer, tool: str) -> str:
    if given.action != "accept":
        return "The run goes on without it."
    patterns = {"always": tool, "server": f"{tool.partition('.')[0]}.*"}
    found = patterns.get(given.content.get("decision", ""))
    return "The run goes on" + (f"; {found} goes into policy.allow and is not asked about again." if found else ".")


def _require_terminal() -> None:
    from ot.processes.peer import ClientRefused, ProcessFacts, require_terminal

    try:
        require_terminal(ProcessFacts.read(os.getpid()))
    except ClientRefused as error:
        fail(str(error), DENIED)
    except OSError:
        fail("this system does not tell whether a person is at the terminal", DENIED)


def _ask(fields: dict[str, Any]) -> Answer:
    from ot.brief_repr import quote_text
    from ot.cli.terminal.event_loop import run_async
    from ot.cli.terminal.prompts import TerminalQuestion, fit
    from ot.errors import CannotAsk
    from ot.execution.caller import Question

    client = quote_text(fields["client"], MAX_PLACE)
    whose = f"The run {fields['run']} in the background" if fields["run"] else f"A run of {client}"
    echo(fit(f"{whose} asks, in {fields['directory']}:"))
    try:
        return run_async(TerminalQuestion(fields["left"])(Question(**fields["question"])))
    except CannotAsk as error:
        fail(error.why, DENIED)


# ---------------------------------------------------------------- the servers


def find_questions(connections: ExitStack) -> list[AskedQuestion]:
    """Return all questions that wait, the oldest first."""
    found: list[AskedQuestion] = []
    for path in _sockets():
        server = connections.enter_context(socket.socket(socket.AF_UNIX))
        server.settimeout(ANSWER_SECONDS)
        try:
            server.connect(str(path))
            found += (AskedQuestion(fields, server) for fields in _read_line(server).get("questions", ()))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)  # one that was killed has left it
        except (OSError, ValueError):
            continue  # it has just ended, or does not answer
    return sorted(found, key=lambda asked: asked.fields["since"])


def _sockets() -> list[Path]:
    """Return the sockets of servers whose runs ask; one that its client gave another environment may be elsewhere."""
    user = os.getuid()
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    places = {f"{runtime}/onetool" if runtime else "", f"{RUNTIME}/{user}/onetool", f"/tmp/onetool-{user}"}
    found: list[Path] = []
    for place in filter(None, places):
        with suppress(OSError):
            about = os.lstat(place)
            if stat.S_ISDIR(about.st_mode) and about.st_uid == user and not about.st_mode & 0o077:
                found += Path(place).glob(f"*{QUESTIONS_ENDING}")
    return found


def _read_line(server: socket.socket) -> dict[str, Any]:
    """Return the next message; raise OSError when none comes in time, ValueError when it is malformed."""
    line = bytearray()
    while not line.endswith(b"\n"):
        if not (part := server.recv(1 << 16)):
            raise ConnectionResetError("it closed the connection")
        line += part
    return json.loads(line)
