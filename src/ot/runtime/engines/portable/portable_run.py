"""One program on its way through one Monty session."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import re
import secrets
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import pydantic_monty as monty

from ot.config.models import Limits
from ot.errors import EngineCrashed, LimitExceeded, OneToolError, ProgramFailed, RunError
from ot.execution.deadline import Deadline
from ot.registry.saved_programs import EnteredProgram
from ot.runtime.engines.engine import NO_VALUE, Constant, Function, Missing, Outcome, Reach, StillbornRun
from ot.runtime.engines.failures import await_hint, builtin_exception, cpu_limit_error
from ot.runtime.engines.given_time import call_as_task
from ot.runtime.engines.portable.gaps import find_gaps
from ot.runtime.engines.portable.portable_files import PortableFiles, without_default_encoding
from ot.runtime.engines.portable.refusals import OTHERWISE, REFUSED, refusal, with_finished_values
from ot.runtime.engines.portable.saved_functions import BY_NAME, FedProgram, SavedFunctions, entrance
from ot.runtime.print_capture import PrintCapture
from ot.runtime.program import Program

SUSPENSIONS = re.compile(r"suspension limit \d+ exceeded")
"""How Monty says that a program asked for the host too often."""
MAX_MESSAGE = 4000
CLOCK = frozenset({"time.time", "datetime.now", "date.today"})
"""What Monty asks for where a program has a given time."""
LAST_ASSIGNMENT = "last-assignment"
"""The name of this in the table of tolerances."""
STILLBORN_SECONDS = 0.1
"""A process that dies sooner, having asked for nothing, was dying when it got the program, which is begun again."""

Answer = Mapping[str, Any]


class PackHandle:
    """What stands for a pack inside a program; it holds nothing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<pack>"


@dataclass
class Memory:
    """What the host must know of the programs that ran in one Monty session, to answer for their functions too."""

    feeds: int = 0
    packs: dict[Any, str] = field(default_factory=dict[Any, str])
    references: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    awaited: dict[str, Collection[tuple[int, int]]] = field(default_factory=dict[str, Collection[tuple[int, int]]])
    """The calls that are awaited, by the name that Monty gave to the program."""
    binds: set[str] = field(default_factory=set[str])
    """Names that programs assigned: packs of the same names are hidden."""
    entered: dict[str, Collection[tuple[int, int]]] = field(default_factory=dict[str, Collection[tuple[int, int]]])
    """The calls behind which the function of a saved program runs, by the name that Monty gave to the text."""
    saved: dict[str, FedProgram] = field(default_factory=dict[str, FedProgram])
    """The saved programs, by the same."""

    def begin(self) -> str:
        """Return Monty's name for the next text it is fed."""
        self.feeds += 1
        return f"<python-input-{self.feeds - 1}>"


class PortableRun:
    """Feeds a program to a session and answers what it asks for."""

    def __init__(
        self, program: Program, reach: Reach, limits: Limits, deadline: Deadline, memory: Memory | None = None
    ) -> None:
        """Run *program*; *memory* is that of the session that it goes on with."""
        self._memory = memory or Memory()
        self._source = ""
        self._in_session = memory is not None
        packs = [name for name in program.loads if reach.has_pack(name)]
        ready = with_finished_values(without_default_encoding(program), packs)
        self._rows = ready.tolerated[len(program.tolerated) :]
        self._saved = SavedFunctions(ready, reach, self._memory.binds)
        ready = calls_for_missing_members(ready, reach, self._memory.binds)
        self.program, self._entered = self._saved.enter_calls(ready)
        self.reach = reach
        self.limits = limits
        self.deadline = deadline
        self.printed = PrintCapture(limits.print_bytes, reach.note_print)
        self._files = PortableFiles(reach, program, limits.value_bytes, self._saved.names)
        self._calls: dict[int, asyncio.Task[Answer]] = {}
        self._failures: set[str] = set()
        """What tools said when they failed: none of it is the engine's own refusal."""
        self._end: RunError | None = None
        self._host_seconds = 0.0
        self._asked = False
        self._started = time.monotonic()

    async def drive(self, session: monty.AsyncMontySession) -> Outcome:
        """Return the outcome, within the run's wall clock."""
        self._started = time.monotonic()
        try:
            async with self.deadline.timeout():
                return await self._feed(session)
        except TimeoutError:
            raise LimitExceeded("run_seconds", f"the run took longer than {self.limits.run_seconds:g} s") from None
        finally:
            await self._cancel_calls()

    async def _feed(self, session: monty.AsyncMontySession) -> Outcome:
        mark = NoValueMark(self.program)
        try:
            hidden, is_first = self._memory.binds, not self._memory.feeds
            packs = [name for name in self.program.loads if name not in hidden and self.reach.has_pack(name)]
            inputs = {name: self._handle(name) for name in packs}
            # Names that are used as if they had a meaning get it, but for those that the session knows.
            if missing := [text for name, text in self.program.prelude if name not in hidden]:
                self._memory.begin()
                await session.feed_run("\n".join(missing), print_callback=self.printed)
            await self._feed_saved(session)
            self._source = self._memory.begin()
            self._memory.entered[self._source] = self._entered
            if self.program.awaited:
                self._memory.awaited[self._source] = self.program.awaited
            self._memory.binds |= self.program.assigns
            # A session keeps the directory that an earlier program has gone to.
            cwd = await self._files.start() if is_first else None
            snapshot = await session.feed_start(
                self.program.source + mark.source, inputs=inputs, print_callback=self.printed, cwd=cwd
            )
            while not isinstance(snapshot, monty.MontyComplete):
                snapshot = await self._step(snapshot)
                if self._end:
                    raise self._end
            value = mark.result(snapshot.output)
            answered = value is NO_VALUE and await self._answers(session)
            magic = await self._magic(session)
        except monty.MontyError as error:
            raise self._end or self._explain(error) from None
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            # Values that have no form outside the sandbox fail while they are converted, as bare exceptions.
            raise ProgramFailed(type(error).__name__, f"the result cannot be returned: {error}") from None
        return Outcome(
            answered[0] if answered else value,
            self.printed.text(),
            magic.get("__format__"),
            magic.get("__sanitize__"),
            describe_foreign,
            tolerated=(*self._rows, *([LAST_ASSIGNMENT] if answered else [])),
            notes=tuple(self._files.notes),
        )

    async def _feed_saved(self, session: monty.AsyncMontySession) -> None:
        for text, fed in self._saved.fed():
            name, inputs = self._memory.begin(), {pack: self._handle(pack) for pack in (fed.packs if fed else ())}
            if fed:
                self._memory.saved[name], self._memory.entered[name] = fed, fed.entered
                self._memory.awaited[name] = fed.program.awaited
            await session.feed_run(text, inputs=inputs, print_callback=self.printed)

    async def _answers(self, session: monty.AsyncMontySession) -> list[Any]:
        """Return the program's last assigned variables in a list, if they are its answer and would be CPython's too."""
        names = self.program.answers
        if not names or self._in_session or self.printed.text():
            return []
        answer = ast.parse(names[0] if len(names) == 1 else f"[{', '.join(names)}]").body
        answering = ast.Module([*with_prelude(self.program).body, *answer], [])
        if find_gaps(ast.walk(answering), self.program.loads & {*self._memory.packs.values()}):
            return []
        self._memory.begin()
        with contextlib.suppress(monty.MontyError, TypeError, ValueError, OverflowError, RecursionError):
            return [await session.feed_run(ast.unparse(answer[0]), print_callback=self.printed)]
        return []

    async def _magic(self, session: monty.AsyncMontySession) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in self.program.magic:
            self._memory.begin()
            with contextlib.suppress(monty.MontyRuntimeError):  # assigned in a branch not taken, or in a function
                found[name] = await session.feed_run(name, print_callback=self.printed)
        return found

    # ---------------------------------------------------------------- one step

    async def _step(self, snapshot: Any) -> Any:
        self._asked = True
        pack = self._memory.packs.get(getattr(snapshot, "object_id", None))
        match snapshot:
            case monty.AsyncFutureSnapshot():
                return await self._settle(snapshot)
            case monty.AsyncNameLookupSnapshot():
                return await self._look_up(snapshot, pack)
            case _:
                return await self._answer_call(snapshot, pack)

    async def _look_up(self, snapshot: monty.AsyncNameLookupSnapshot, pack: str | None) -> Any:
        """Answer with a pack, or with a member of *pack*; what is not there, Monty itself says."""
        name = snapshot.variable_name
        if pack is None:
            return await (snapshot.resume(value=self._handle(name)) if self.reach.has_pack(name) else snapshot.resume())
        match self.reach.member(pack, name):
            case Constant(value):
                return await snapshot.resume(value=value)
            case Function():
                return await snapshot.resume(value=self._reference(pack, name))
            case _:
                return await snapshot.resume()

    async def _answer_call(self, snapshot: monty.AsyncFunctionSnapshot, pack: str | None) -> Any:
        name = str(snapshot.function_name)
        if pack is None:
            reference = None if snapshot.is_os_function else self._memory.references.get(name)
            if reference is None:
                return await self._answer_system(snapshot)
            pack, name = reference
        position = snapshot.position
        line = self.program.line_at(position.start) if position.filename == self._source else None
        fed = self._memory.saved.get(position.filename)
        inside = (fed.saved.name, fed.program.line_at(position.start) - 1) if fed else None
        enters = (position.start, position.end) in self._memory.entered.get(position.filename, ())
        try:
            call = self.reach.call(pack, name, snapshot.args, snapshot.kwargs, line=line, inside=inside)
            call = self._enter(call, enters)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            # Arguments that have no form outside the sandbox fail while they are converted.
            return await snapshot.resume({"exception": TypeError(f"{pack}.{name}(): {error}")})
        awaits = (position.start, position.end) in self._memory.awaited.get(position.filename, ())
        if self.reach.given:
            # Of a call beside others that are awaited nobody can tell which task makes it.
            call = call_as_task(snapshot.call_id + 1 if awaits or self._calls else 0, call)
        if awaits:
            self._calls[snapshot.call_id] = asyncio.create_task(self._answer(call))
            return await snapshot.resume({"future": ...})
        return await self._resume(snapshot, self._answer(call))

    @staticmethod
    async def _enter(call: Coroutine[Any, Any, Any], enters: bool) -> Any:
        value = await call
        if not isinstance(value, EnteredProgram):
            return value
        if not enters:
            raise TypeError(BY_NAME.format(name=value.program.name, function=value.function))
        return entrance(value)

    async def _answer_system(self, snapshot: monty.AsyncFunctionSnapshot) -> Any:
        name = snapshot.function_name
        if self._files.knows(name):
            return await self._resume(snapshot, self._answer(self._files.answer(name, snapshot.args, snapshot.kwargs)))
        if (given := self.reach.given) and name in CLOCK:
            return await snapshot.resume({"return_value": given.answer(name, *snapshot.args)})
        if name not in ("system.sleep", "system.async_sleep"):
            return await snapshot.resume_not_handled() if snapshot.is_os_function else await snapshot.resume_auto()
        seconds = float(snapshot.args[0]) if snapshot.args else 0.0
        if seconds > self.deadline.seconds_left:
            self._end = LimitExceeded("run_seconds", f"sleep({seconds:g}) is longer than the run may still take")
            raise self._end
        if name == "system.sleep":
            return await self._resume(snapshot, self._sleep(seconds, skip=bool(given and given.skips)))
        self._calls[snapshot.call_id] = asyncio.create_task(self._sleep(seconds))
        return await snapshot.resume({"future": ...})

    async def _sleep(self, seconds: float, *, skip: bool = False) -> Answer:
        given = self.reach.given
        due = given.passed + int(max(seconds, 0) * 1e9) if given else 0
        await asyncio.sleep(0 if skip else max(seconds, 0))
        if given:
            given.move_to(due)
        return {"return_value": None}

    async def _resume(self, snapshot: monty.AsyncFunctionSnapshot, answer: Coroutine[Any, Any, Answer]) -> Any:
        started = time.monotonic()
        result = await answer
        self._host_seconds += time.monotonic() - started
        if self._end:
            raise self._end
        return await snapshot.resume(result)  # pyright: ignore[reportArgumentType] - one of ExternalResult's two shapes

    async def _settle(self, snapshot: monty.AsyncFutureSnapshot) -> Any:
        started = time.monotonic()
        if self.reach.given and len(snapshot.pending_call_ids) == 1:
            self.reach.given.alone.add(snapshot.pending_call_ids[0] + 1)
        waiting = {call_id: self._calls[call_id] for call_id in snapshot.pending_call_ids}
        await asyncio.wait(waiting.values(), return_when=asyncio.FIRST_COMPLETED)
        self._host_seconds += time.monotonic() - started
        if self._end:
            raise self._end
        done = {call_id: self._calls.pop(call_id).result() for call_id, task in waiting.items() if task.done()}
        return await snapshot.resume(done)  # pyright: ignore[reportArgumentType] - as above

    # ---------------------------------------------------------------- handles and answers

    def _handle(self, pack: str) -> monty.ClassInstance:
        handle = monty.ClassInstance(PackHandle())
        self._memory.packs[handle.id] = pack
        return handle

    def _reference(self, pack: str, name: str) -> Callable[[], None]:
        def reference() -> None: ...

        # As the exact engine shows it; no two tools share it, as they could share names put together with underscores.
        reference.__name__ = f"<tool {pack}.{name}>"
        self._memory.references[reference.__name__] = (pack, name)
        return reference

    async def _answer(self, call: Coroutine[Any, Any, Any]) -> Answer:
        try:
            return {"return_value": await call}
        except RunError as end:
            # The program must not catch this: the run ends at the next step.
            self._end = end
            return {"exception": RuntimeError("the run has ended")}
        except (OneToolError, OSError, ValueError, TypeError, RuntimeError, MemoryError) as error:
            failure = builtin_exception(error) if isinstance(error, OneToolError) else error
            self._failures.add(_text(failure))
            return {"exception": failure}

    async def _cancel_calls(self) -> None:
        calls = [task for task in self._calls.values() if not task.done()]
        for task in calls:
            task.cancel()
        if calls:
            await asyncio.wait(calls, timeout=1.0)

    # ---------------------------------------------------------------- what went wrong

    def _explain(self, error: monty.MontyError) -> RunError:
        if isinstance(error, monty.MontyCrashedError):
            if error.timed_out or self._seconds_computed() >= self.limits.cpu_seconds * 0.9:
                return cpu_limit_error(self.limits.cpu_seconds)
            died = StillbornRun if not self._asked and self._seconds_computed() < STILLBORN_SECONDS else EngineCrashed
            return died("the process that ran the program died; nothing else is affected, run it again")
        inner = error.exception()
        kind, message = type(inner).__name__, _text(inner)
        if kind == "TimeoutError" and self._seconds_computed() >= self.limits.cpu_seconds * 0.9:
            return cpu_limit_error(self.limits.cpu_seconds)
        if kind == "RuntimeError" and SUSPENSIONS.fullmatch(message):
            return LimitExceeded("calls", "the run made too many calls, lookups and sleeps")
        line = self._line(error)
        inside, told_by_tool = self._place(error), message in self._failures
        text = inside[2] if inside else self.program.line(line)
        if not told_by_tool and (refused := refusal(message, text, self.reach.has_pack)):
            return ProgramFailed(REFUSED, refused.what, line, refused.instead, inside=inside)
        return ProgramFailed(kind, message[:MAX_MESSAGE], line, self._hint(kind, message, line), inside=inside)

    def _place(self, error: monty.MontyError) -> tuple[str, int, str] | None:
        """Return the innermost line of a saved program that *error* went through."""
        if not self._memory.saved or not isinstance(error, monty.MontyRuntimeError | monty.MontySyntaxError):
            return None
        frames = ((frame.line, self._memory.saved.get(frame.filename)) for frame in reversed(error.traceback()))
        return next((fed.place(line) for line, fed in frames if fed), None)

    def _seconds_computed(self) -> float:
        """How long the program itself has been computing: what the engine's own clock counts."""
        return time.monotonic() - self._started - self._host_seconds

    def _line(self, error: monty.MontyError) -> int | None:
        if not isinstance(error, monty.MontyRuntimeError | monty.MontySyntaxError):
            return None
        return next((frame.line for frame in reversed(error.traceback()) if frame.filename == self._source), None)

    def _hint(self, kind: str, message: str, line: int | None) -> str:
        if kind == "MemoryError":
            return "the program used more memory than limits.memory_mb allows"
        if kind in ("NotImplementedError", "ImportError", "ModuleNotFoundError"):
            return f"the portable engine lacks this; {OTHERWISE}"
        return await_hint(kind, message, self.program.line(line))


class NoValueMark:
    """Tells a program that ended without a value from one that returned None."""

    def __init__(self, program: Program) -> None:
        self._never = not program.ends_in_expression and not program.returns
        # Only a program that may or may not reach a return needs a mark at its end.
        needed = program.returns and not program.ends_in_expression
        self._text = f"no value {secrets.token_hex(8)}" if needed else ""
        self.source = f"\n{self._text!r}" if self._text else ""

    def result(self, value: Any) -> Any:
        """Return the program's value, or NO_VALUE."""
        return NO_VALUE if self._never or (self._text and value == self._text) else value


def describe_foreign(value: Any) -> Any:
    """Return the program's dataclass as its fields, its named tuple as a tuple, and a short text for the rest."""
    if isinstance(value, tuple):
        return tuple(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - of any items
    if isinstance(value, PackHandle):
        return "<pack>"
    if isinstance(value, monty.MontyClassProxy):
        return dict(value.attributes) if value.is_dataclass else f"<{value.name} object>"
    if isinstance(value, monty.MontyStdTypeProxy | monty.MontyClassTypeProxy):
        return f"<{value.name}>"
    return f"<{type(value).__name__}>"


def _text(error: BaseException) -> str:
    """Return an exception's message; KeyError shows its key as Python does."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - made of the program's own data
        return ""


def with_prelude(program: Program) -> ast.Module:
    """Return the tree of *program* behind its prelude, whose statements stand where their names are first used."""
    if not program.prelude:
        return program.tree
    lines = {node.id: node.lineno for node in reversed(program.nodes) if isinstance(node, ast.Name)}
    before: list[ast.stmt] = []
    for name, text in program.prelude:
        (statement,) = ast.parse(text).body
        for node in ast.walk(statement):
            if isinstance(node, ast.stmt | ast.expr | ast.alias):
                node.lineno = lines.get(name, 1)
        before.append(statement)
    return ast.Module([*before, *program.tree.body], [])


def calls_for_missing_members(program: Program, reach: Reach, hidden: Collection[str] = ()) -> Program:
    """Return *program* with ``pack.nothing`` made ``pack.nothing()``: Monty has words of its own for a look-up."""
    called = {id(node.func) for node in program.nodes if isinstance(node, ast.Call)}
    missing = [
        (*program.span(node), f"{node.value.id}.{node.attr}()")
        for node in program.nodes
        if isinstance(node, ast.Attribute) and id(node) not in called and isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Name) and node.lineno == node.end_lineno
        and reach.has_pack(node.value.id) and node.value.id not in program.binds and node.value.id not in hidden
        and isinstance(reach.member(node.value.id, node.attr), Missing)
    ]  # fmt: skip
    return program.edit(missing) if missing else program
