"""Runner: the whole story of one run() call on one screen."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio.to_thread

from ot.config.models import Limits, Security
from ot.errors import (
    LimitExceeded,
    NotSupported,
    OneToolError,
    ProgramFailed,
    RunCancelled,
    RunError,
    ToolError,
    WrongCalls,
)
from ot.execution.call_context import OpenModel, no_model
from ot.execution.caller import Caller
from ot.execution.consent import RunConsent
from ot.execution.deadline import Deadline
from ot.execution.tool_executor import ToolExecutor
from ot.files.run_images import RunImages
from ot.log_span import log_span
from ot.logs import current_request, current_run
from ot.output.finish import Asked, Finish
from ot.output.formats import PAGE_FORMAT
from ot.output.result_pages import is_page
from ot.registry.saved_programs import EnteredProgram
from ot.registry.tool import Tool
from ot.registry.tool_loader import load_tool
from ot.runtime.call_check import find_mistakes
from ot.runtime.engines.engine import NO_VALUE, Engine, Outcome
from ot.runtime.engines.saved_calls import calling_program
from ot.runtime.failure_text import NOTHING_HAS_RUN, failure_cause, failure_text, find_failed_call, unavailable_service
from ot.runtime.fence_processor import strip_fences
from ot.runtime.out_of_reach import missing_in_pack, out_of_reach
from ot.runtime.pack_proxy import PackProxy, Tape
from ot.runtime.program import Program, Reading, parse_program
from ot.runtime.project_proxy import ProjectProxy
from ot.runtime.reply import BareReply, Reply
from ot.runtime.run_budget import MAX_DEPTH, RunBudget, RunStart, current_budget
from ot.runtime.run_events import TellEvent
from ot.runtime.run_feed import RunFeed, RunTrail
from ot.runtime.sessions import Sessions
from ot.runtime.snippets import Snippets, expand_aliases
from ot.runtime.tolerances import program_in, tolerate, unwrap
from ot.stats.rows import OpenRunSpan, RunBegun, RunObserver, RunRow
from ot.values.parts import NotSerializable, Unread
from ot_sdk.redaction import redact_block, redact_value

logger = logging.getLogger(__name__)

NO_VALUE_TEXT = "OK: the program ran and returned no value"
MAX_ERROR_TEXT = 8000
QUICK_CHARACTERS = 10_000
"""Programs up to this size are read on the event loop, larger ones in a thread."""
MOST_KEPT, KEPT_CHARACTERS = 16, 2_000
"""How many programs are kept as they were read, and up to which size: many are run again as they are."""
WRITE_SECONDS = 1.0
"""What a run that has used up its time still gets for its reply."""
PAGE = ("ot", "result")
"""The call whose value may be a page of a stored result, which is bounded already and never stored again."""


class Runner:
    """Runs commands against one picture of the configuration; a reload builds another runner."""

    def __init__(
        self,
        *,
        executor: ToolExecutor,
        engine: Engine,
        finish: Finish,
        snippets: Snippets,
        projects: ProjectProxy,
        aliases: Mapping[str, str],
        limits: Limits,
        security: Security,
        redact: Callable[[str], str] = lambda text: text,
        consent: Callable[[Caller, Deadline], RunConsent] = lambda caller, deadline: RunConsent(caller.ask, deadline),
        observers: Sequence[RunObserver] = (),
        open_span: OpenRunSpan | None = None,
        sessions: Sessions | None = None,
        find_tools: Callable[[str], Sequence[Tool]] = lambda query: (),
        models: Callable[[], OpenModel] = lambda: no_model,
        unused_secrets: Sequence[str] = (),
        feed: RunFeed | None = None,
        directory: str = "",
        take_room: Callable[[int], None] = lambda size: None,
        images: Callable[[str, str], RunImages | None] = lambda principal, run: None,
        keep_program: Callable[[str, str], None] | None = None,
    ) -> None:
        """Put together what one run needs; *redact* takes secrets out of every text that leaves.

        *find_tools* returns the tools that fit some words best; it may take its time. *models* is called once a run,
        for the model that its tools may ask. *unused_secrets* say which files with secrets are not used, and why.
        *feed* shows runs, as those of *directory*, to a person who watches. *take_room* is asked before files grow.
        *images* returns what keeps the files that a run of a principal changes, as they were before.
        *keep_program* takes the id and the text of a run that called tools and did not fail.
        """
        self.executor = executor
        self.engine = engine
        self._finish = finish
        self._snippets = snippets
        self._projects = projects
        self._aliases = aliases
        self._limits = limits
        self._security = security
        self._redact = redact
        self._consent = consent
        self._observers = tuple(observers)
        self._open_span = open_span
        self._sessions = sessions
        self._find_tools = find_tools
        self.models = models
        self._take_room = take_room
        self._images = images
        self._unused_secrets = unused_secrets
        self._keep_program = keep_program
        self._readings: dict[tuple[str, bool], Program] = {}
        self._faultless: set[Program] = set()
        """Programs in which no mistake was found, and none can be as long as the registry is the same."""
        self._feed = feed or RunFeed(redact)
        self._directory = directory

    async def read(self, command: str, *, session: str = "", packs: Collection[str] = ()) -> Reading:
        """Return *command*, which may use *packs* that are not here, as read once: expanded and parsed."""
        started = time.monotonic()
        if not packs and (kept := self._readings.get((command, bool(session)))):
            return Reading(len(command), started, kept)
        try:
            return Reading(len(command), started, await self._program(command, bool(session), packs))
        except OneToolError as error:
            return Reading(len(command), started, error)

    async def _program(self, command: str, in_session: bool, packs: Collection[str]) -> Program:
        if len(command) > self._limits.command_bytes:
            return self._parse(command)  # the parser refuses it before anything else looks at it
        known = {*self._aliases, "run"} if in_session else self._aliases
        text, rows = unwrap(strip_fences(command), known)
        code = await self._snippets.expand(text)
        read = partial(self._read, code, known, in_session, packs)
        program = (
            read() if len(code) <= QUICK_CHARACTERS else await anyio.to_thread.run_sync(read, abandon_on_cancel=True)
        )
        program = replace(program, tolerated=(*rows, *program.tolerated)) if rows else program
        # A snippet may expand differently the next time.
        if code is text and len(command) <= KEPT_CHARACTERS and not packs:
            if len(self._readings) >= MOST_KEPT:
                del self._readings[next(iter(self._readings))]
            self._readings[command, in_session] = program
        return program

    def _read(self, code: str, known: Collection[str], in_session: bool, packs: Collection[str]) -> Program:
        program = expand_aliases(program_in(code, self._parse, known), self._aliases)
        installed = self.executor.registry.packs
        return tolerate(program, {*installed, *packs} if packs else installed, in_session=in_session)

    def _parse(self, code: str) -> Program:
        return parse_program(code, max_bytes=self._limits.command_bytes)

    async def run(
        self,
        reading: Reading,
        caller: Caller,
        *,
        tell: TellEvent | None = None,
        session: str = "",
        format: str | None = None,
        background: RunStart | None = None,
        tape: Tape | None = None,
    ) -> Reply:
        """Return the reply to a command; a failure is a reply too, never an exception.

        Runs that name the same *session* share their variables; *format* is for a program that asks for none.
        *background* is the start that this is of a run in the background. *tape* records it, or answers its calls.
        """
        trail = RunTrail(
            caller, tell=tell, session=session, format=format, started=reading.started, program=reading.program,
            directory=self._directory, tape=tape,
        )  # fmt: skip
        if background:
            trail.run_id, trail.start, trail.seconds = background
        return await self._record(trail, reading.chars, lambda budget: self._outcome(reading, trail, budget))

    async def call(
        self,
        pack: str,
        name: str,
        arguments: Mapping[str, Any],
        caller: Caller,
        *,
        tell: TellEvent | None = None,
        bare: bool = False,
        key: str = "",
    ) -> Reply:
        """Return the reply to one call of a tool, as to a program that is nothing but this call.

        A *bare* one is a BareReply. *key* is what whoever asks knows the call by.
        """
        trail = RunTrail(caller, tell=tell, called=(pack, name), bare=bare, directory=self._directory)

        async def outcome(budget: RunBudget) -> Outcome:
            trail.packs.called_alone = f"{pack}.{name}"
            value = await trail.packs.call(pack, name, (), arguments, key=key)
            entered = isinstance(value, EnteredProgram)
            return await self._run_entered(value, trail.packs, budget.deadline) if entered else Outcome(value)

        return await self._record(trail, 0, outcome)

    async def _record(self, trail: RunTrail, chars_in: int, work: Callable[[RunBudget], Awaitable[Outcome]]) -> Reply:
        """Return the reply of *work*, on its own budget, and tell observers."""
        trail.budget = budget = RunBudget(self._limits, current_budget.get(), trail.seconds)
        budget.writes.take_room = self._take_room
        if budget.depth == 1:  # what a run inside it changes is undone with it
            budget.writes.make_images = partial(self._images, trail.caller.principal, trail.run_id)
        feed = self._feed
        if feed.watchers:
            feed.begin(trail)
        budget.consent = budget.consent or self._consent(trail.asking, budget.deadline)
        budget.open_llm = budget.open_llm or self.models()
        trail.packs = packs = self._reach(trail, budget)
        begun = RunBegun(trail.caller, trail.run_id, self.engine.name, bool(trail.session))
        token, logged = current_budget.set(budget), current_run.set(trail.run_id)
        end_span = self._open_span(begun) if self._open_span else None
        reply: Reply | None = None
        feed.open[trail.run_id] = trail
        try:
            reply = answer = await self._answer(work, trail, budget)
        finally:
            current_budget.reset(token)
            if budget.depth == 1:
                budget.writes.close()
            del feed.open[trail.run_id]
            row = self._report(trail, chars_in, reply)
            if end_span:
                end_span(row)
            if feed.watchers:
                feed.end(row, reply)
            current_run.reset(logged)
        if packs.effects.any:
            # Whoever has the reply may be asked what the run did, and a server that is killed then cannot tell.
            await self.executor.settle()
        return answer

    async def _answer(
        self, work: Callable[[RunBudget], Awaitable[Outcome]], trail: RunTrail, budget: RunBudget
    ) -> Reply:
        try:
            outcome = trail.outcome = await work(budget)
            if trail.tape:
                trail.tape.note_end(outcome, trail.packs, self.engine.name)
            writing = self._bare(outcome, trail) if trail.bare else self._success(outcome, trail)
            return await self._in_time(writing, outcome, budget)
        except OneToolError as error:
            failure = error
        except asyncio.CancelledError:
            # Its client may have cancelled it meanwhile, too.
            if not trail.called_off or trail.task.uncancel():
                raise
            failure = RunCancelled("the user cancelled the run (onetool watch)")
        if trail.tape:
            trail.tape.note_end(failure, trail.packs, self.engine.name)
        return await (self._bare(failure, trail) if trail.bare else self._failure(failure, trail))

    async def _bare(self, found: Outcome | OneToolError, trail: RunTrail) -> Reply:
        failure = found if isinstance(found, OneToolError) else None
        value = found.value if isinstance(found, Outcome) else None
        if failure is None:
            trail.packs.blocks.show(value)
        # Whoever asked sanitises what it shows, by its own settings.
        asked = Asked(tools=tuple(trail.packs.tools_called), owner=trail.caller.principal)
        reply = await self._reply([], trail, asked, type(failure).__name__ if failure else "")
        printed = self._redact("\n".join(filter(None, (trail.packs.printed.text(), trail.packs.blocks.notes))))
        return BareReply(
            reply.texts, reply.is_error, reply.meta, reply.blocks, value, calls=reply.calls, printed=printed,
            failure=failure,
        )  # fmt: skip

    def _report(self, trail: RunTrail, chars_in: int, reply: Reply | None) -> RunRow:
        """Tell observers and the log of a run that has ended, and return what; one without a reply was cancelled."""
        seconds, packs = time.monotonic() - trail.started, trail.packs
        if self._sessions and trail.program and not trail.session:
            self._sessions.earlier.note(trail.caller.seat, trail.program)
        packs.end()
        if self._keep_program and packs.calls and trail.program and not trail.session and reply and not reply.is_error:
            before = "".join(f"{text}\n" for _, text in trail.program.prelude)
            self._keep_program(trail.run_id, before + trail.program.source)
        error = reply.error if reply else "Cancelled"
        chars = sum(map(len, reply.texts)) if reply else 0
        row = RunRow(
            time.time(), trail.caller.principal, trail.caller.client, trail.run_id, chars_in, chars,
            round(seconds * 1000, 3), error, packs.calls, packs.tool_chars, packs.ot_chars, self.engine.name,
            tuple(trail.tolerated),
        )  # fmt: skip
        fields = {"run": trail.run_id, "client": trail.caller.client, "calls": packs.calls, "resultLen": chars}
        # A program that fails is its author's business: nothing here went wrong.
        log_span(logger, logging.INFO, "runner.execute", seconds, error, fields=fields, failed=logging.INFO)
        for observer in self._observers:
            observer.run_finished(row)
        return row

    async def _outcome(self, reading: Reading, trail: RunTrail, budget: RunBudget) -> Outcome:
        if budget.depth > MAX_DEPTH:
            raise LimitExceeded("calls", f"runs are nested more than {MAX_DEPTH} levels deep")
        packs = trail.packs
        if isinstance(reading.result, OneToolError):
            raise reading.result
        program = packs.program = reading.result
        if trail.session and self._sessions:
            check = partial(self._check, program, packs)
            return await self._sessions.run(
                trail.caller.seat, trail.session, program, packs, self._limits, budget.deadline, check=check
            )
        await self._check(program, packs)
        if trail.seconds is not None:
            return await self._in_background(program, packs, trail.seconds, budget.deadline)
        return await self.engine.run(program, packs, self._limits, budget.deadline)

    async def _check(self, program: Program, packs: PackProxy, hidden: Collection[str] | None = None) -> None:
        """Check that the engine can run *program* and no call of it is bound to fail; *hidden* as for the latter."""
        gaps: NotSupported | None = None
        try:
            if len(program.source) <= QUICK_CHARACTERS:
                self.engine.refuse(program, packs)
            else:
                await anyio.to_thread.run_sync(self.engine.refuse, program, packs, abandon_on_cancel=True)
        except NotSupported as error:
            gaps = error
        if program not in self._faultless:
            if mistakes := await find_mistakes(program, packs, hidden):
                raise WrongCalls(mistakes, gaps)
            if hidden is None and not packs.foreseen_for_now and len(program.source) <= KEPT_CHARACTERS:
                if len(self._faultless) >= MOST_KEPT:
                    self._faultless.clear()
                self._faultless.add(program)
        if gaps:
            raise gaps

    async def _run_entered(self, entered: EnteredProgram, packs: PackProxy, deadline: Deadline) -> Outcome:
        """Return the outcome of a saved program that is called without a program."""
        program, packs.entered = calling_program(entered), entered
        try:
            self.engine.refuse(program, packs)
            return await self.engine.run(program, packs, self._limits, deadline)
        except ProgramFailed as error:
            error.line = None  # it is not one that anybody wrote
            raise

    async def _in_background(self, program: Program, packs: PackProxy, seconds: float, deadline: Deadline) -> Outcome:
        try:
            limits = self._limits.model_copy(update={"run_seconds": seconds})
            return await self.engine.run(program, packs, limits, deadline)
        except LimitExceeded as error:
            if error.limit == "run_seconds":
                error.section = "background"
            raise

    def _reach(self, trail: RunTrail, budget: RunBudget) -> PackProxy:
        make = trail.tape.make_packs if trail.tape else PackProxy
        return make(
            self.executor,
            self._projects,
            budget,
            self._limits,
            caller=trail.caller,
            run_id=trail.run_id,
            start=trail.start,
            tell=trail.tell,
        )

    @staticmethod
    async def _in_time(writing: Awaitable[Reply], outcome: Outcome, budget: RunBudget) -> Reply:
        """Return the reply, if it can be written out in the time that the run has left, or in a moment."""
        try:
            async with asyncio.timeout(max(budget.deadline.seconds_left, WRITE_SECONDS)):
                return await writing
        except TimeoutError:
            late = LimitExceeded("run_seconds", "the result took too long to format: return less of it")
            late.printed = outcome.printed
            raise late from None

    async def _success(self, outcome: Outcome, trail: RunTrail) -> Reply:
        asked = self._make_asked(outcome, trail)
        texts = await self._finish_printed(outcome.printed, trail, asked)
        printed = any(text.strip() for text in texts)
        if outcome.value is NO_VALUE or (outcome.value is None and printed):
            texts += [] if printed else [NO_VALUE_TEXT]  # what was printed is the answer
        else:
            trail.packs.blocks.show(outcome.value)
            try:
                texts.append(await self._finish.value(outcome.value, asked, outcome.describe))
            except NotSerializable as error:
                failed = ProgramFailed("ValueError", f"the result cannot be returned: {error}")
                failed.printed = outcome.printed
                return await self._failure(failed, trail)
        open_ends = trail.packs.effects.open_ends(trail.run_id)
        value = NO_VALUE if isinstance(outcome.value, Unread) else outcome.value
        return await self._reply([*texts, *outcome.notes, *filter(None, [open_ends])], trail, asked, value=value)

    async def _reply(
        self, texts: list[str], trail: RunTrail, asked: Asked, error: str = "", value: Any = NO_VALUE
    ) -> Reply:
        """Put together texts, and the non-text content of tools, without secrets."""
        told = trail.packs.blocks
        blocks = [await self._block(block, asked) for block in told.blocks]
        meta = self._meta(trail, error) | ({"tools": redact_value(told.meta, self._redact)} if told.meta else {})
        said = f"note: {await self._finish.text(told.notes, asked)}" if told.notes else ""
        texts = [*texts, *filter(None, (said, told.note, trail.packs.effects.note_unrecorded))]
        texts = [self._redact(text) for text in texts]
        known = None if value is NO_VALUE else value
        return Reply(
            tuple(texts), bool(error), meta, tuple(blocks), known, value is not NO_VALUE, calls=trail.packs.calls,
            handles=tuple(asked.handles),
        )  # fmt: skip

    async def _block(self, block: Mapping[str, Any], asked: Asked) -> dict[str, Any]:
        shown = redact_block(block, self._redact)
        if asked.sanitize and "text" in shown.get("resource", {}):
            shown["resource"]["text"] = await self._finish.text(shown["resource"]["text"], asked)
        return shown

    async def _finish_printed(self, printed: str, trail: RunTrail, asked: Asked) -> list[str]:
        """Return the prints of the program and its tools, each as a separate text."""
        return [await self._finish.text(text, asked) for text in (printed, trail.packs.printed.text()) if text]

    def _make_asked(self, outcome: Outcome, trail: RunTrail) -> Asked:
        sanitize = outcome.sanitize is not None and outcome.sanitize is not False
        is_one_page = trail.single_call == PAGE and is_page(outcome.value)
        return Asked(
            format=trail.format if outcome.format is None else outcome.format,
            own_format=PAGE_FORMAT if is_one_page else self._own_format(trail.single_call),
            sanitize=sanitize or self._must_sanitize(trail),
            tools=tuple(trail.packs.tools_called),
            owner=trail.caller.principal,
            inline=is_one_page,
        )

    def _own_format(self, single_call: tuple[str, str] | None) -> str | None:
        """Return the format of the one tool that is called, if it is that."""
        if single_call is None:
            return None
        tool = load_tool(self.executor.registry, *single_call)
        return tool.format if tool else None

    def _must_sanitize(self, trail: RunTrail) -> bool:
        """Whether the operator wants it, whatever the program says."""
        if self._security.sanitize == "untrusted":
            return trail.packs.sources - {"local"} != set()
        return self._security.sanitize == "always"

    async def _failure(self, error: OneToolError, trail: RunTrail) -> Reply:
        call = find_failed_call(error, trail.packs.failed)
        instead = await self._instead(error, call, trail.program)
        if isinstance(error, ProgramFailed):
            error.hint = instead or error.hint

        def was_assigned(name: str) -> bool:
            return self._sessions is not None and self._sessions.earlier.assigned(trail.caller.seat, name)

        explain = partial(
            failure_text,
            error,
            trail.program,
            self.executor.registry,
            returned=trail.packs.returned,
            was_assigned=was_assigned,
        )
        # What exists, for a name that does not, is told after a look at every pack: not on the event loop.
        failures = error.mistakes if isinstance(error, WrongCalls) else [error]
        looks = any(isinstance(one, ProgramFailed) and one.kind == "NameError" for one in failures)
        text = await anyio.to_thread.run_sync(explain, abandon_on_cancel=True) if looks else explain()
        text = text if isinstance(error, ProgramFailed) or not instead else f"{text}\n{instead}"
        text = text if len(text) <= MAX_ERROR_TEXT else text[:MAX_ERROR_TEXT] + "… [cut]"
        if self._unused_secrets and trail.caller.admin and "secret" in text.lower():
            text = "\n".join([text, *self._unused_secrets])
        done = trail.packs.effects.beside(error, trail.run_id)
        done = NOTHING_HAS_RUN if isinstance(error, WrongCalls) else done
        text = f"{text}\n{done}" if done else text
        sanitize = self._must_sanitize(trail) or bool(trail.program and trail.program.asks_to_sanitize)
        asked = Asked(sanitize=sanitize, tools=tuple(trail.packs.tools_called), owner=trail.caller.principal)
        printed = error.printed if isinstance(error, RunError) else ""
        texts = [*await self._finish_printed(printed, trail, asked), await self._finish.text(text, asked)]
        reply = await self._reply(texts, trail, asked, type(error).__name__)
        return replace(reply, cause=failure_cause(error, call))

    async def _instead(self, error: OneToolError, call: ToolError | None, program: Program | None) -> str:
        """Say what to do about what the program, or its failed *call*, could not reach; else nothing."""
        registry = self.executor.registry
        if call:
            return missing_in_pack(call, registry) or unavailable_service(call)
        if isinstance(error, ToolError):
            return missing_in_pack(error, registry)
        reached = out_of_reach((isinstance(error, WrongCalls) and error.gaps) or error, program)
        if reached is None:
            return ""
        return await anyio.to_thread.run_sync(reached.instead, registry, self._find_tools, abandon_on_cancel=True)

    def _meta(self, trail: RunTrail, error: str = "") -> dict[str, Any]:
        meta: dict[str, Any] = {"engine": self.engine.name, "run": trail.run_id}
        if request := current_request.get():
            meta["request"] = request
        meta["ms"] = round((time.monotonic() - trail.started) * 1000, 1)
        return meta | ({"error": error} if error else {}) | ({"tolerated": rows} if (rows := trail.tolerated) else {})
