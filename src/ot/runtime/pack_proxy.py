"""PackProxy: what a program's ``pack.function(...)`` means, for one run."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from ot.config.models import Limits
from ot.errors import InvalidArguments, OneToolError, ToolError, ToolFailed, ToolUnavailable, UnknownTool
from ot.execution.arguments import is_seen, require_few
from ot.execution.call_context import CallContext, CallForecast, no_model
from ot.execution.caller import Caller
from ot.execution.tool_executor import ToolExecutor
from ot.nearest_names import MAX_NAME, same_name
from ot.registry.saved_programs import EnteredProgram, SavedPack, SavedProgram
from ot.registry.tool import Tool
from ot.registry.tool_registry import ToolRegistry
from ot.runtime import project_proxy
from ot.runtime.engines.engine import Constant, Function, Missing, Outcome, Place
from ot.runtime.engines.given_time import GivenTime
from ot.runtime.engines.saved_calls import read_saved
from ot.runtime.failure_text import ReturnedValues
from ot.runtime.foreseen_calls import foreseen_calls
from ot.runtime.print_capture import PrintCapture
from ot.runtime.program import Program
from ot.runtime.project_proxy import ProjectProxy
from ot.runtime.reply import ReplyBlocks, RunEffects
from ot.runtime.run_budget import FileCalls, RunBudget
from ot.runtime.run_events import CallEnded, CallStarted, Printed, Progress, TellEvent
from ot.runtime.tolerances import arguments_in_dict
from ot.values.plain import plain_arguments

PAGE_TOOL = "ot.result"
SHOW_TOOL = "ot.show"
NOTHING_TO_SHOW = "there is no image, audio or file of a tool in it, or it is shown already: print it, or return it"
CALLED_OFF = "the user cancelled this call (onetool watch); whether it took effect is unknown"


@dataclass(slots=True, eq=False)
class CallUnderWay:
    """A call of the program that has not ended."""

    tool: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    line: int | None
    started: float
    task: asyncio.Task[Any] | None
    called_off: bool = False
    """Whether who watches has cancelled it."""


class Tape(Protocol):
    """Records a run, or answers its calls as they were recorded."""

    replays: bool  # whether no tool is called
    packs: Sequence[str]  # what the program has beside the installed ones

    @property
    def make_packs(self) -> Callable[..., PackProxy]:
        """Makes what the program reaches, as PackProxy is made."""
        ...

    def note_end(self, found: Outcome | OneToolError, packs: PackProxy, engine: str) -> None:
        """Take note of what the run came to."""
        ...

    def finish(self) -> Sequence[str]:
        """Write what is to be written; return what went wrong."""
        ...


class PackProxy:
    """The Reach of one run: it counts, bounds and checks every call before the door sees it."""

    given: GivenTime | None = None

    def __init__(
        self,
        executor: ToolExecutor,
        projects: ProjectProxy,
        budget: RunBudget,
        limits: Limits,
        *,
        caller: Caller,
        run_id: str,
        start: int = 0,
        tell: TellEvent | None = None,
    ) -> None:
        """Call through *executor*, on *budget*; a run in the background has the number of its *start*."""
        self._executor = executor
        self._projects = projects
        self._budget = budget
        self._limits = limits
        self._caller = caller.with_ask(budget.consent.ask) if budget.consent else caller
        self._run_id = run_id
        self._start = start
        self.tell = tell
        self.printed = PrintCapture(limits.print_bytes)
        self._in_flight = asyncio.Semaphore(limits.calls_in_flight)
        self._ids = itertools.count(1)
        self.blocks = ReplyBlocks()
        self.returned = ReturnedValues()
        self.effects = RunEffects()
        self.calls = self.tool_chars = self.ot_chars = 0
        self.failed: ToolError | None = None
        """How the latest call failed that did, whether or not the program caught it."""
        self.tools_called: list[str] = []
        self.sources: set[str] = set()
        self.tolerated: set[str] = set()
        """The rows of the table of tolerances by which calls were read."""
        self.program: Program | None = None
        """The program whose calls these are, once it is parsed."""
        self.foreseen_for_now = False
        """Whether what was foreseen of calls may be otherwise at the next run, though the registry is the same."""
        self.called_alone = ""
        """The tool that is called without a program."""
        self.entered: EnteredProgram | None = None
        """What the next call has passed the door with already, of a saved program that is called without a program."""
        self.under_way: dict[int, CallUnderWay] = {}
        self._files = FileCalls(executor, budget, lambda: self._context(None), limits.value_bytes)

    @property
    def registry(self) -> ToolRegistry:
        """The registry that the run sees."""
        return self._executor.registry

    def has_pack(self, name: str) -> bool:
        """Return whether *name* is a pack."""
        return name in self.registry.packs

    def saved(self, name: str) -> SavedProgram | None:
        """Return the saved program that the pack *name* is, if it is one that can be used."""
        pack = self.registry.packs.get(name)
        return pack.program if isinstance(pack, SavedPack) and not pack.broken else None

    def member(self, pack: str, name: str) -> Function | Constant | Missing:
        """Return the member ``pack.name``.

        Raises:
            LimitExceeded: The run has used up its calls: a look at what is not there costs one, or it never ended.
        """
        found = self._find(pack, name)
        if isinstance(found, Missing):
            self._budget.spend_call()
        return found

    def _find(self, pack: str, name: str) -> Function | Constant | Missing:
        if pack == project_proxy.PACK:
            return self._projects.member(name)
        try:
            self.registry.tool(pack, name)
        except ToolError:
            return Missing()
        return Function()

    async def call(
        self,
        pack: str,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        line: int | None = None,
        key: str = "",
        inside: Place | None = None,
    ) -> Any:
        """Return the tool's value as a plain copy; *key* is what whoever asked for it elsewhere knows the call by.

        Of a saved program's tool it is the EnteredProgram, for whoever is to run it.

        Raises:
            ToolError: The call failed; the program may catch it.
            LimitExceeded: The run has used up its calls; the program may not.
        """
        if self.entered:
            entered, self.entered = self.entered, None
            return entered
        self._budget.spend_call()
        _require_names(pack, name, kwargs)
        name = self._spell(pack, name)
        tool, number, task = f"{pack}.{name}", next(self._ids), asyncio.current_task()
        self._note(pack, tool)
        call = self.under_way[number] = CallUnderWay(tool, args, kwargs, line, time.monotonic(), task)
        try:
            await self._in_flight.acquire()
            try:
                return await self._check_and_call(pack, name, args, kwargs, line, key, number, inside)
            finally:
                self._in_flight.release()
        except ToolError as error:
            self.failed = error
            raise
        except asyncio.CancelledError:
            # The run may have been cancelled meanwhile, too.
            if not call.called_off or task is None or task.uncancel():
                raise
            self.failed = ToolFailed(tool, "CancelledError", CALLED_OFF)
            raise self.failed from None
        finally:
            del self.under_way[number]

    def cancel_call(self, number: int) -> bool:
        """End that call of the program, which may catch it; return whether it was under way."""
        call = self.under_way.get(number)
        if call is None or call.task is None:
            return False
        call.called_off = True
        call.task.cancel()
        return True

    async def foresee(
        self, pack: str, name: str, arguments: tuple[Sequence[Any], Mapping[str, Any]] | None, *, must_exist: bool
    ) -> ToolError | None:
        """Return the refusal of a call, if it is certain."""
        args, kwargs = arguments or ((), {})
        try:
            _require_names(pack, name, kwargs)
            if pack == project_proxy.PACK and isinstance(self._projects.member(name), Constant):
                return None
            tool = self._tool(pack, name)
            # A dict that stands alone may name the arguments.
            if arguments and (len(args) != 1 or kwargs or is_seen(args)):
                meant = arguments_in_dict(tool, args, kwargs)
                given = args if meant is None else ()
                lasts = await self._executor.foresee(tool, given, meant or kwargs, self._caller)
                self.foreseen_for_now |= not lasts
        except (UnknownTool, InvalidArguments) as error:
            return error if must_exist or isinstance(error, InvalidArguments) else None
        except ToolError:
            self.foreseen_for_now = True  # for a denied or unlisted tool the call itself says so
        return None

    async def file(self, step: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out one step of Python's own file functions and return its result.

        Raises:
            ToolError: It failed, as above.
            LimitExceeded: The run has used up its file calls.
        """
        async with self._in_flight:
            return await self._files.call(step, arguments)

    def end(self) -> None:
        """Take the sums of the file calls into the run's own, and tell of them."""
        for record in self._files.end():
            self.calls += 1
            self.tool_chars += record.chars

    async def _check_and_call(
        self,
        pack: str,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        line: int | None = None,
        key: str = "",
        number: int = 0,
        inside: Place | None = None,
    ) -> Any:
        tool, called = self._tool(pack, name), f"{pack}.{name}"
        require_few(tool, len(args) + len(kwargs))
        most, parts = self._limits.value_bytes, self._limits.value_parts
        given, named = await plain_arguments(called, args, kwargs, max_bytes=most, max_parts=parts)
        if (meant := arguments_in_dict(tool, given, named)) is not None:
            self.tolerated.add("dict-argument")
            given, named = (), meant
        self.calls += 1
        context = self._context(line, key, number)
        if inside and (saved := self.saved(inside[0])):
            context.foresee = partial(self._foresee_inside, saved, inside[1])
        value, chars = await self._call_and_tell(tool, given, named, context)
        if isinstance(value, EnteredProgram):
            return value
        self.returned.note(called, value, chars)
        if called == SHOW_TOOL and not self.blocks.show(value):
            raise ToolFailed(SHOW_TOOL, "ValueError", NOTHING_TO_SHOW)
        if pack == "ot":
            self.ot_chars += chars
        else:
            self.tool_chars += chars
        return value

    def _spell(self, pack: str, name: str) -> str:
        exact = self.registry.exact_name(pack, name)
        if exact != name and same_name(name, [exact]):  # an alias is a name like any other
            self.blocks.add_note(f"{pack}.{exact}", f"{name}() was taken as {exact}()")
        return exact

    def _tool(self, pack: str, name: str) -> Tool:
        if pack == project_proxy.PACK:
            self._projects.require_function(self.registry.exact_name(pack, name))
        return self.registry.tool(pack, name)

    async def _call_and_tell(
        self, tool: Tool, args: Sequence[Any], kwargs: Mapping[str, Any], context: CallContext
    ) -> tuple[Any, int]:
        """Call through the door, and tell observers when the call starts and ends."""
        started, error, value, chars = time.monotonic(), "", None, 0
        if self.tell:
            self.tell(CallStarted(self._run_id, context.call_id, tool.full_name, tuple(args), kwargs, context.line))
        try:
            value, chars = await self._executor.call(tool.pack, tool.name, args, kwargs, context)
            return value, chars
        except BaseException as failure:
            error = failure.kind if isinstance(failure, ToolFailed) else type(failure).__name__
            raise
        finally:
            if self.tell:  # who began to watch meanwhile knows that the call has started
                seconds = time.monotonic() - started
                self.tell(CallEnded(self._run_id, context.call_id, tool.full_name, seconds, error, chars, value))

    def _context(self, line: int | None, key: str = "", number: int = 0) -> CallContext:
        clock, consent = self._budget.deadline, self._budget.consent
        return CallContext(
            self._caller, self._run_id, number or next(self._ids), clock.at, self._pass_on, self._call_back, clock,
            consent, line, self._foresee, self._budget.open_llm or no_model, None, self.effects, self._start, key,
            self._budget.writes,
        )  # fmt: skip

    def _foresee(self, tool: str, line: int | None) -> CallForecast:
        """Return what is known about the waiting and further calls of *tool*."""
        waiting = sum(call.tool == tool for call in self.under_way.values())
        if self.program:
            foreseen = foreseen_calls(self.program, tool, line, waiting)
            # How often the outer program starts this one, its text does not tell.
            return replace(foreseen, most=None) if self._budget.depth > 1 else foreseen
        alone = tool == self.called_alone
        return CallForecast(line, "", waiting, 1 if alone else None, alone)

    def _foresee_inside(self, saved: SavedProgram, number: int, tool: str, line: int | None) -> CallForecast:
        """Return as ``_foresee``, of a call that stands in a line of a saved program."""
        waiting = sum(call.tool == tool for call in self.under_way.values())
        return CallForecast(number, read_saved(saved).whole_line(number), waiting, None, file=saved.file.name)

    async def _call_back(self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call a tool for a tool: its own call holds a place already, and waiting for another could wait for ever."""
        self._budget.spend_call()
        _require_names(pack, name, kwargs)
        name = self._spell(pack, name)
        self._note(pack, f"{pack}.{name}")
        if self.saved(pack):
            raise ToolUnavailable(pack, "tools call no saved programs, only programs do")
        return await self._check_and_call(pack, name, args, kwargs)

    def _pass_on(self, what: str, tool: str, details: Mapping[str, Any]) -> None:
        if what == "print":
            text = str(details.get("text", ""))
            self.printed("stdout", text)
            if self.tell:
                self.tell(Printed(self._run_id, text, tool))
        elif what == "progress" and self.tell:
            done, total, message = details.get("done"), details.get("total"), str(details.get("message", ""))[:500]
            self.tell(Progress(done, total, message, tool, self._run_id))
        elif what == "content":
            self._take_block(details["block"], str(details.get("id", "")))
        elif what == "meta":
            self.blocks.add_meta(tool, details["meta"])
        elif what == "note":
            self.blocks.add_note(tool, str(details["text"]))

    def note_print(self, text: str) -> None:
        """Tell what the program prints; the engine keeps it for the reply."""
        if self.tell:
            self.tell(Printed(self._run_id, text))

    def _take_block(self, block: Mapping[str, Any], id: str) -> None:
        if id:
            self.blocks.keep(block, id)
        else:
            self.blocks.add(block)

    def _note(self, pack: str, tool: str) -> None:
        if known := self.registry.packs.get(pack):
            # A page of a stored result may hold a text of any source.
            self.sources.add("stored" if tool == PAGE_TOOL else known.source)
        if len(self.tools_called) < 20 and tool not in self.tools_called:
            self.tools_called.append(tool[:100])


def _require_names(pack: str, name: str, kwargs: Mapping[str, Any]) -> None:
    """Raise InvalidArguments if a name is too long, over 200 characters, to be looked up and reported."""
    if max(len(pack), len(name), *map(len, kwargs)) > MAX_NAME:
        tool = f"{pack[:50]}.{name[:50]}"
        raise InvalidArguments(tool, f"{tool}(): a name of more than {MAX_NAME} characters is malformed")
