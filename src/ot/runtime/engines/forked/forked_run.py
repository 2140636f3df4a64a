"""One program on its way through one forked child."""

from __future__ import annotations

import ast
import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import PurePath
from typing import Any

import orjson

from ot.config.models import Limits
from ot.errors import EngineCrashed, LimitExceeded, OneToolError, ProgramFailed, RunError
from ot.execution.backends.backend import eager_task
from ot.execution.deadline import Deadline
from ot.registry.saved_programs import EnteredProgram
from ot.runtime.engines.engine import Constant, Function, Outcome, Place, Reach, StillbornRun
from ot.runtime.engines.failures import await_hint, builtin_exception, cpu_limit_error
from ot.runtime.engines.forked.child_process import Child, Death
from ot.runtime.engines.forked.jail.channel import NOTICE, largest_message
from ot.runtime.engines.forked.messages import (
    FILES,
    MALFORMED,
    QUICK_BYTES,
    failure_answer,
    file_answer,
    read_in_thread,
    read_notice,
    read_place,
    read_request,
    value_answer,
)
from ot.runtime.engines.given_time import call_as_task
from ot.runtime.engines.saved_calls import packs_in, read_saved
from ot.runtime.print_capture import PrintCapture
from ot.runtime.program import Program
from ot.runtime.tolerances import TABLE
from ot_sdk import tagged

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 0.05
"""A program that has computed for longer yields to those that have not."""
MAX_MESSAGE = 4000
MAX_NOTES, MAX_NOTE = 5, 500
MAX_HELD_BYTES = 8 << 20
"""Of calls under way; above that no more is taken from the child."""
REQUESTS_PER_CALL = 2
MAX_MEMBERS = 1000
"""A call may need a lookup of its function; a program may also look at members without calling them."""
ALL_TOGETHER = "all programs that run at this time used more memory together than the server gives them"
FEWER = "the kernel ended this one; run fewer at a time, or let each hold less"
NO_ROOM = "the server has no memory left for what the program sent or asked for"
LESS = "the system limits the server's own memory: return less, or fetch less at a time"

Notice = tuple[dict[str, Any], Any]


class AnswerTurns:
    """Has one request answered in a turn of the event loop, whichever run's: everybody else waits for no more."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def wait(self, answer: Callable[[], None]) -> None:
        """Call *answer* when it is its turn."""
        self._waiting.append(answer)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._take)

    def _take(self) -> None:
        answer = self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._take)
        answer()


class ForkedRun:
    """Gives a program to a child and answers what it asks for."""

    def __init__(
        self,
        program: Program,
        reach: Reach,
        limits: Limits,
        deadline: Deadline,
        turns: AnswerTurns,
        keep: int = 0,
    ) -> None:
        """Run *program*; *keep* is its number in the session that the child is kept for, if it is."""
        self._turns = turns
        self._keep = keep
        self.program = program
        self.reach = reach
        self.limits = limits
        self.deadline = deadline
        self.printed = PrintCapture(limits.print_bytes, reach.note_print)
        self._read_notice = partial(read_notice, most_parts=limits.value_parts)
        self._read_request = partial(read_request, most_parts=limits.value_parts)
        # The child was started, and is listened to, in the context of whichever run came first.
        self._context = contextvars.copy_context()
        self._ended: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._calls: set[asyncio.Task[None]] = set()
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._notices: deque[bytes] = deque()
        self._reading: asyncio.Task[None] | None = None
        self._gone: Death | None = None
        self._held = 0
        self._requests = 0
        self._characters = 0
        self._asked = False
        self._cpu_before = 0.0
        self._lowered = False

    async def drive(self, child: Child) -> Outcome:
        """Return the outcome, within the run's clocks; raise RunError if the program ended without one."""
        self._child = child
        self._cpu_before = child.cpu_seconds()
        self._clock = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._check_cpu)
        try:
            async with self.deadline.timeout():
                child.begin(self._receive, self._handle_loss, largest_message(self.limits.value_bytes), self._start())
                return await self._ended
        except TimeoutError:
            raise LimitExceeded("run_seconds", f"the run took longer than {self.limits.run_seconds:g} s") from None
        finally:
            self._clock.cancel()
            if self._keep and self._ended_well():
                child.rest()
            else:
                child.kill()
            await self._cancel_work()

    def _ended_well(self) -> bool:
        """Whether the child can take another program: this one has told its end, and had memory left."""
        if not self._ended.done() or self._ended.cancelled() or self._child.gone:
            return False
        error = self._ended.exception()
        return error is None or (isinstance(error, ProgramFailed) and error.kind != "MemoryError")

    def _start(self) -> bytes:
        program = self.program
        packs = packs_in(program.names, self.reach)
        returns = {"binds": sorted(program.binds), "waits": program.waits} if program.returns else None
        more: dict[str, Any] = {"prelude": program.prelude} if program.prelude else {}
        if program.answers and not self._keep:  # in a session it is there for the next run
            more["answers"] = program.answers
        if given := self.reach.given:
            more["given"] = [given.start, given.seed, given.skips]
        return orjson.dumps(
            more
            | {
                "source": program.source,
                "keep": self._keep,
                "awaited": list(program.awaited),
                "returns": returns,
                "packs": packs,
                "called": only_called(program, packs),
                "print_bytes": self.limits.print_bytes,
                "most_bytes": largest_message(self.limits.value_bytes),
            }
        )

    # ---------------------------------------------------------------- what the child sends

    def _receive(self, number: int, payload: bytes) -> None:
        if number != NOTICE:
            return self._handle_request(number, payload)
        self._notices.append(payload)
        return self._read_notices() if self._reading is None else None

    def _handle_request(self, number: int, payload: bytes) -> None:
        self._asked = True
        self._requests += 1
        self._held += len(payload)
        if self._requests > REQUESTS_PER_CALL * self.limits.calls + MAX_MEMBERS + self.limits.file_calls:
            return self._end(LimitExceeded("calls", "the run asked for too much"))
        if len(self._calls) + len(self._waiting) >= self.limits.calls + self.limits.calls_in_flight:
            return self._end(LimitExceeded("calls", "the run made too many calls at the same time"))
        if self._held > MAX_HELD_BYTES:
            self._child.pause(True)
        self._waiting.append((number, payload))
        return self._turns.wait(self._answer_next)

    def _answer_next(self) -> None:
        if self._waiting and not self._ended.done():
            task = eager_task(self._answer(*self._waiting.popleft()), self._context.copy())
            if not task.done():
                self._calls.add(task)
                task.add_done_callback(self._calls.discard)

    def _read_notices(self) -> None:
        """Read the notices in their order; a long one is read in a thread, and the rest waits for it."""
        while self._notices:
            payload = self._notices.popleft()
            if len(payload) > QUICK_BYTES:
                self._reading = asyncio.ensure_future(self._read_long(payload))
                return
            self._handle_notice(partial(self._read_notice, payload))
        if self._gone:
            self._end_for_death(self._gone)

    async def _read_long(self, payload: bytes) -> None:
        try:
            self._handle_notice(await read_in_thread(self._read_notice, payload))
        finally:
            self._reading = None
        self._read_notices()

    def _handle_notice(self, read: Callable[[], Notice]) -> None:
        try:
            self._notice(*read())
        except MALFORMED as error:
            self._end_malformed(error)
        except MemoryError:
            self._end(ProgramFailed("MemoryError", NO_ROOM, None, LESS))

    def _notice(self, message: dict[str, Any], value: Any) -> None:
        if message["t"] == "print":
            return self._print(message["o"])
        if message["t"] != "end":
            raise ValueError("no such notice")
        if type(dropped := message.get("dropped", 0)) is not int or dropped < 0:
            raise ValueError("a malformed count")
        self.printed.drop(dropped)
        if "error" in message:
            return self._end(self._explain(*message["error"]))
        magic: dict[str, Any] = message["magic"]
        rows = message.get("tolerated", ())
        outcome = Outcome(
            value,
            self.printed.text(),
            magic.get("format"),
            magic.get("sanitize"),
            tolerated=tuple(row for row in TABLE if row in rows) if rows else (),
            notes=tuple(str(note)[:MAX_NOTE] for note in message.get("notes", [])[:MAX_NOTES]),
        )
        return None if self._ended.done() else self._ended.set_result(outcome)

    def _explain(self, kind: Any, message: Any, line: Any, place: Any = None) -> ProgramFailed:
        if type(kind) is not str or type(message) is not str:
            raise ValueError("an error without a message")
        number, message = line if type(line) is int else None, message[:MAX_MESSAGE]
        failed = ProgramFailed(kind[:100], message, number, _hint(kind, message, self.program.line(number)))
        if place is not None and (saved := self.reach.saved((place := read_place(place))[0])):
            failed.inside = saved.file.name, place[1], read_saved(saved).line(place[1])
        return failed

    def _print(self, text: Any) -> None:
        # The child sends nothing empty and nothing beyond the cap: such a message is not a print of its own.
        if type(text) is not str or not text or self._characters > self.limits.print_bytes:
            raise ValueError("a malformed print")
        self._characters += len(text)
        self.printed("stdout", text)

    def _end_malformed(self, error: Exception) -> None:
        self._end(EngineCrashed(f"the process that ran the program sent a malformed message: {error}"[:200]))

    def _handle_loss(self, death: Death) -> None:
        self._gone = death
        if self._reading is None:  # else its last words may be its value
            self._end_for_death(death)

    def _end_for_death(self, death: Death) -> None:
        for_memory = self._child.was_out_of_memory()
        if death.unread and not self._asked:  # the program is all that it was sent
            return self._end(StillbornRun(f"the process that was to run the program died before ({death.how})"))
        if death.no_room:
            return self._end(ProgramFailed("MemoryError", NO_ROOM, None, LESS))
        if for_memory:
            return self._end(ProgramFailed("MemoryError", ALL_TOGETHER, None, FEWER))
        why = f"the process that ran the program died ({death.how}); nothing else is affected, run it again"
        return self._end(EngineCrashed(why))

    def _end(self, error: RunError) -> None:
        if not self._ended.done():
            self._ended.set_exception(error)

    # ---------------------------------------------------------------- calls

    async def _answer(self, number: int, payload: bytes) -> None:
        try:
            try:
                request = (
                    self._read_request(payload)
                    if len(payload) <= QUICK_BYTES
                    else (await read_in_thread(self._read_request, payload))()
                )
            except MALFORMED as error:
                return self._end_malformed(error)
            answer = await self._answer_request(*request)
        except RunError as end:
            return self._end(end)  # the program must not catch this
        except OneToolError as error:
            answer = failure_answer(builtin_exception(error))
        except MemoryError:
            answer = failure_answer(MemoryError(f"{NO_ROOM}; {LESS}"))
        except MALFORMED as error:
            # The request was one, so this is a fault of the server's own: told to the program, and to the log.
            logger.exception("a call failed in the server")
            answer = failure_answer(RuntimeError(f"the call failed in the server: {type(error).__name__}"))
        finally:
            self._let_go(payload)
        given = self.reach.given
        return self._child.send(number, given.stamp(answer) if given else answer)

    def _let_go(self, payload: bytes) -> None:
        self._held -= len(payload)
        if self._held <= MAX_HELD_BYTES < self._held + len(payload):
            self._child.pause(False)

    async def _answer_request(
        self,
        pack: str,
        name: str,
        args: list[Any] | None,
        kwargs: dict[str, Any],
        line: int | None,
        task: int | None,
        inside: Place | None,
    ) -> bytes:
        if pack == FILES:
            return file_answer(await self.reach.file(name, kwargs))
        if args is not None:
            call = self.reach.call(pack, name, args, kwargs, line=line, inside=inside)
            value = await (call if task is None else call_as_task(task, call))
            if isinstance(value, EnteredProgram):
                return _entrance(value, self.reach)
            return await value_answer(value)
        match self.reach.member(pack, name):
            case Constant(value) if isinstance(value, PurePath):
                return orjson.dumps({"path": str(value)})
            case Constant(value):
                return await value_answer(value)
            case Function():
                return b'{"function":1}'
            case _:
                # Calling an unknown name fails with the list of known ones.
                return await value_answer(await self.reach.call(pack, name, (), {}))

    async def _cancel_work(self) -> None:
        work = [*self._calls, *([self._reading] if self._reading else [])]
        calls = [task for task in work if not task.done()]
        for task in calls:
            task.cancel()
        if calls:
            await asyncio.wait(calls, timeout=1.0)

    # ---------------------------------------------------------------- the clock of computing

    def _check_cpu(self) -> None:
        used = self._child.cpu_seconds() - self._cpu_before
        left = self.limits.cpu_seconds - used
        if left <= 0:
            return self._end(cpu_limit_error(self.limits.cpu_seconds))
        if used >= PATIENCE_SECONDS and not self._lowered:
            self._lowered = True
            self._child.lower()
        next_look = left if self._lowered else min(left, PATIENCE_SECONDS - used)
        self._clock = asyncio.get_running_loop().call_later(max(next_look, 0.01), self._check_cpu)
        return None


def only_called(program: Program, packs: list[str]) -> dict[str, list[str]]:
    """Return the members of packs that a program only ever calls: they need not be looked up before."""
    if not packs:
        return {}
    functions = {id(node.func) for node in program.nodes_of(ast.Call)}
    called: dict[str, set[str]] = {}
    valued: dict[str, set[str]] = {}
    for node in program.nodes_of(ast.Attribute):
        if isinstance(node.value, ast.Name) and node.value.id in packs:
            kept = called if id(node) in functions else valued
            kept.setdefault(node.value.id, set()).add(node.attr)
    return {pack: sorted(names - valued.get(pack, set())) for pack, names in called.items()}


def _entrance(entered: EnteredProgram, reach: Reach) -> bytes:
    """Return the answer to a call of a saved program: its text, and what it is called with."""
    program, saved = read_saved(entered.program), entered.program
    packs = packs_in(program.names, reach)
    told = {"name": saved.name, "function": entered.function, "source": program.source}
    told |= {"awaited": list(program.awaited), "packs": packs, "called": only_called(program, packs)}
    return orjson.dumps({"saved": told, "v": tagged.encode(entered.arguments)})


IN_MEMORY = (
    "use db = sqlite3.connect(':memory:'); db.deserialize(open(path, 'rb').read()), and to keep it "
    "open(path, 'wb').write(db.serialize())"
)
OPENED_IN_C = (
    ("unable to open database file", IN_MEMORY),
    ("attempt to write a readonly database", IN_MEMORY),
    ("Failed to open local file", "use io.BytesIO(open(path, 'rb').read()) in the path's place"),
    ("fileno: this file", "for np.memmap and np.fromfile use np.frombuffer(open(path, 'rb').read(), dtype=...)"),
)  # fmt: skip
"""How libraries fail that open files past Python, and what they take instead."""


def _hint(kind: str, message: str, line: str) -> str:
    if found := next((fix for words, fix in OPENED_IN_C if words in message), ""):
        return f"only Python's own functions reach files: {found}"
    if kind == "MemoryError":
        return "the program used more memory than limits.memory_mb allows"
    if kind == "PermissionError" and "Operation not permitted" in message:
        return "programs are sandboxed: files, network and processes are reached through tools only"
    return await_hint(kind, message, line)
