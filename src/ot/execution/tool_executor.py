"""ToolExecutor: the only door to a tool, whoever calls."""

from __future__ import annotations

import asyncio
import logging
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import anyio

from ot.errors import InvalidArguments, NotApproved, ToolDenied, ToolError, ToolFailed, ToolTimeout
from ot.execution.annotation_check import may_take, read_accepted, require_fit
from ot.execution.arguments import bind_arguments, is_seen
from ot.execution.backends.backend import Backend, Begun, Border, eager_task
from ot.execution.call_context import CallContext, CallTool
from ot.execution.caller import Caller
from ot.execution.consent import agree_to_write, how_to_allow
from ot.execution.deadline import Deadline
from ot.execution.effect_entries import EffectEntries, Entries, SummedEntries, how_failed
from ot.execution.ledger import Effect, EffectWatcher, HowEnded, Ledger, NoLedger
from ot.execution.policy import MAX_NAMES, NOBODYS, PolicyVerdict, ToolPolicy, why
from ot.execution.schema_check import SchemaCheck
from ot.files.run_writes import AsksFirst
from ot.log_span import LOG_FILE_ONLY, cut_arguments, cut_result, log_span
from ot.registry.proxy_target import PROXY
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import ToolRegistry
from ot_sdk.redaction import MARK

logger = logging.getLogger(__name__)

SLOW_SECONDS = 1.0
CANCEL_GRACE_SECONDS = 0.25
"""How long a cancelled call may take to end before it is left behind."""
MAX_MESSAGE = 2000
OT_DEFAULTS: Mapping[str, Mapping[str, Any]] = {"ot.result": {"offset": 1, "limit": 100}}
"""What a call of the ``ot`` pack is logged with even where the program left it out."""

REDACTED = (
    "{tool} was not called: an argument holds '[secret:', which stands where a secret was taken out of a value, and "
    "the call may change something: it would write that text in the secret's place. Send only what is to be changed"
)

OT_EFFECTS = frozenset(("ot.background", "ot.undo"))
"""Of the ``ot`` pack, what must not be done twice without anybody knowing."""


class CallRecord(NamedTuple):
    """What observers learn of one call: never arguments or values.

    ``chars`` is the size of its value, ``source`` the backend that carried it out, empty when there is no such tool.
    """

    tool: str
    caller: Caller
    run_id: str
    seconds: float
    error: str = ""
    chars: int = 0
    source: str = ""


class CallObserver(Protocol):
    """Watches the door; statistics and logs are observers."""

    def finished(self, call: CallRecord) -> None:
        """Take note of a call that has ended; must be quick and must not raise."""
        ...


NOTHING_AGREED: Mapping[str, str] = MappingProxyType({})
_agreed_for: ContextVar[Mapping[str, str]] = ContextVar("ot_agreed_for", default=NOTHING_AGREED)
"""The tools that a tool may call without a further question: its user agreed to a call that needs their permission."""

type OpenCallSpan = Callable[[str, CallContext], Callable[[CallRecord], None]]
"""Begins the span of a call of the tool that is named, and returns what ends it; neither may raise."""


class ToolExecutor:
    """Resolves, checks, allows, times and carries out every tool call."""

    def __init__(
        self,
        registry: ToolRegistry,
        backends: Mapping[str, Backend],
        *,
        policy: ToolPolicy | None = None,
        require_approved: Callable[[Tool], None] | None = None,
        as_approved: Callable[[Tool], Tool] = lambda tool: tool,
        call_seconds: float = 30.0,
        observers: Sequence[CallObserver] = (),
        border: Border | None = None,
        ledger: Ledger | None = None,
        refuse_unrecorded: bool = False,
        audit: EffectWatcher | None = None,
        open_span: OpenCallSpan | None = None,
        directory: str = "",
    ) -> None:
        """Call the tools of *registry* through the backend that each names; values come back over *border*.

        *require_approved* raises for a tool that is not as its user approved it; *as_approved* returns it with no
        hint that is laxer than those approved. A call that may change something is written into *ledger* first, as one
        of *directory*; *refuse_unrecorded* refuses one that cannot be.
        """
        self.registry = registry
        self._backends = backends
        self._policy = policy or ToolPolicy()
        self._require_approved = require_approved
        self._as_approved = as_approved
        self._schemas = SchemaCheck()
        self._known: dict[int, _ToolFacts] = {}
        self._call_seconds = call_seconds
        self._observers = tuple(observers)
        self._border = border or Border()
        self._entries = EffectEntries(ledger or NoLedger(), refuse=refuse_unrecorded)
        self._audit = audit
        self._open_span = open_span
        self._directory = directory

    async def call(
        self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], context: CallContext
    ) -> tuple[Any, int]:
        """Return the value of ``pack.name(*args, **kwargs)`` as a plain copy, and its size in characters.

        Raises:
            ToolError: The call ended without a value; the class says why.
        """
        return await self._call_and_record(
            f"{pack}.{name}", lambda: self.registry.tool(pack, name), args, kwargs, context
        )

    async def call_tool(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: CallContext,
        note: Callable[[CallRecord], None],
        entries: Entries,
    ) -> tuple[Any, int]:
        """Return as ``call`` for a tool that the server itself brings.

        *note* takes the record in observers' place, and *entries* what is to be written into the ledger.
        """
        return await self._call_and_record(tool.full_name, lambda: tool, (), arguments, context, note, entries)

    def sum_entries(self) -> SummedEntries:
        """Return the summary entries of one run's file calls."""
        return SummedEntries(self._entries)

    async def settle(self) -> None:
        """Wait until the ends of calls so far are recorded: a reader of the reply may rely on that."""
        await self._entries.settle()

    async def _call_and_record(
        self,
        called: str,
        find: Callable[[], Tool],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        context: CallContext,
        note: Callable[[CallRecord], None] | None = None,
        entries: Entries | None = None,
    ) -> tuple[Any, int]:
        started, asked = time.monotonic(), _seconds_asking(context)
        error, message, source, chars = "", "", "", 0
        value: Any = None
        arguments: Mapping[str, Any] = kwargs
        # Calls that are summed up have no spans of their own: a program may make thousands of them.
        end_span = self._open_span(called[:200], context) if self._open_span and note is None else None
        try:
            tool = find()
            source = tool.backend
            known = self._facts(tool)
            held = self._as_approved(tool) if known.is_proxied else tool
            arguments, agreed = await self._bind_allowed(known, held, args, kwargs, context)
            # The call's time begins when the tool can be called.
            await self._backends[source].prepare(tool, context)
            if known.is_proxied and self._require_approved:
                # A server that was connected just now may define the tool in another way.
                self._require_approved(tool)
            if known.is_proxied and (now := self._as_approved(tool)) is not held:
                # As above: what needed no consent may need it now.
                held = now
                verdict = self._policy.verdict(held, context.caller.groups)
                agreed = agreed or await self._ask_consent(held, verdict, arguments, context)
            if agreed and tool.needs and context.call:
                context.call = _with_agreement(context.call, dict.fromkeys(tool.needs, agreed))
            started, asked = time.monotonic(), _seconds_asking(context)
            changes = not (self._is_unrecorded(held) if known.is_proxied else known.is_unrecorded)
            if not changes and self._audit is None:
                value = await self._carry_out(tool, arguments, context, "")
            else:
                effect = self._effect(held, arguments, context, agreed)
                value = await self._record_and_send(
                    tool, arguments, context, effect, entries or self._entries, changes=changes
                )
            value, chars = await self._border.take(tool.full_name, value, context.caller.principal)
            return value, chars
        except asyncio.CancelledError:
            error = "Cancelled"
            raise
        except Exception as failure:
            error = failure.kind if isinstance(failure, ToolFailed) else type(failure).__name__
            message = str(failure)[:MAX_MESSAGE]
            raise
        finally:
            # A person's time to think is not the tool's.
            seconds = max(time.monotonic() - started - (_seconds_asking(context) - asked), 0.0)
            record = CallRecord(called[:200], context.caller, context.run_id, seconds, error, chars, source)
            if note:
                note(record)
            else:
                self._report(record, message, arguments, value)
            if end_span:
                end_span(record)

    def verdict(self, tool: Tool, groups: frozenset[str] = NOBODYS) -> PolicyVerdict:
        """Return the policy's verdict on a call of *tool* by a member of *groups*.

        Hints of its own that are laxer than the approved ones do not count.
        """
        return self._policy.verdict(self._as_approved(tool), groups)

    async def prepare(self, tool: Tool, context: CallContext) -> None:
        """Make *tool* callable without calling it; installing and starting have their own deadlines.

        Raises:
            ToolError: It cannot be installed or started.
        """
        await self._backends[tool.backend].prepare(tool, context)

    def _facts(self, tool: Tool) -> _ToolFacts:
        """Return the fixed facts about *tool*: worked out at its first call, not at each."""
        known = self._known.get(id(tool))
        if known is None:
            if len(self._known) >= MAX_NAMES:
                self._known.clear()
            known = self._known[id(tool)] = _ToolFacts(tool, self._is_unrecorded(tool))
        return known

    async def _bind_allowed(
        self, known: _ToolFacts, held: Tool, args: Sequence[Any], kwargs: Mapping[str, Any], context: CallContext
    ) -> tuple[dict[str, Any], str]:
        """Return the bound arguments of a call that the policy allows, and whose consent was needed for it.

        Here and below, *held* is the tool with no hint that is laxer than those approved.
        """
        tool = known.tool
        verdict = self._require_allowed(tool, held, context.caller)
        if not args and kwargs.keys() <= known.names and known.required <= kwargs.keys():  # as most calls are
            arguments = dict(kwargs)
        else:

            def note(text: str) -> None:
                if context.told:
                    context.told("note", tool.full_name, {"text": text})

            arguments = self._bind(tool, held, args, kwargs, note)
        if known.accepted is None:
            arguments = await self._schemas.check(tool, arguments)
        else:
            require_fit(tool, arguments, known.accepted)
        if not known.is_unrecorded and _holds_mark(arguments) and not self._is_unrecorded(held):
            raise InvalidArguments(tool.full_name, REDACTED.format(tool=tool.full_name))
        return arguments, "" if verdict.action == "allow" else await self._ask_consent(
            held, verdict, arguments, context
        )

    def _require_allowed(self, tool: Tool, held: Tool, caller: Caller) -> PolicyVerdict:
        verdict = self._policy.verdict(held, caller.groups)
        try:
            if verdict.action == "deny":
                raise ToolDenied(tool.full_name, verdict.pattern, verdict.rule, verdict.need)
            if self._require_approved:
                self._require_approved(tool)
        except ToolError:
            if self._audit:
                self._audit.note_refused(held, caller, "refused")
            raise
        return verdict

    def _bind(
        self, tool: Tool, held: Tool, args: Sequence[Any], kwargs: Mapping[str, Any], note: Callable[[str], None]
    ) -> dict[str, Any]:
        exact = self._policy.wants_exact_names(held)

        def may_be(parameter: Parameter, value: Any) -> bool:
            return self._only_reads(held) and may_take(parameter, value)

        return bind_arguments(tool, args, kwargs, exact_names=exact, may_be=may_be, note=note)

    async def foresee(self, tool: Tool, args: Sequence[Any], kwargs: Mapping[str, Any], caller: Caller) -> bool:
        """Raise what a call would raise whatever its UNSEEN arguments are; nothing is called and nobody is asked.

        Returns whether that is so whatever hints of the tool its user approves.
        """
        held = self._as_approved(tool)
        self._require_allowed(tool, held, caller)
        bound = self._bind(tool, held, args, kwargs, lambda text: None)
        await self._schemas.check(tool, bound, [name for name, value in bound.items() if not is_seen(value)])
        return bound.keys() >= kwargs.keys()

    async def _ask_consent(
        self, held: Tool, verdict: PolicyVerdict, arguments: Mapping[str, Any], context: CallContext
    ) -> str:
        """Return how the user agreed, and who; nothing for a call that needs no question."""
        if verdict.action == "allow":
            return ""
        if agreed := _agreed_for.get().get(held.full_name):
            return agreed
        try:
            if context.consent is None:
                raise NotApproved(held.full_name, f"it asks first. {how_to_allow(verdict.need or held.full_name)}")
            how = await context.consent.require(held, arguments, context, verdict.need)
        except ToolError:
            if self._audit:
                self._audit.note_refused(held, context.caller, "declined", arguments)
            raise
        return f"{how} of {context.caller.principal}"

    async def _record_and_send(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        context: CallContext,
        effect: Effect,
        entries: Entries,
        *,
        changes: bool,
    ) -> Any:
        """Return the tool's value; a call that may change something is written down before it is sent, and its end."""
        if self._audit:
            await self._audit.sending(effect)
        how: HowEnded = "failed"  # nothing is sent yet
        is_written, value = changes, None
        try:
            is_written = changes and await entries.write(effect, context)
            how = "unknown"
            value = await self._carry_out(tool, arguments, context, effect.key if changes else "")
            how = "done"
            return value
        except ToolError as failure:
            how = how_failed(failure) if how == "unknown" else how
            raise
        finally:
            if is_written:
                entries.record_end(effect, how, value)
            if changes and context.effects:
                context.effects.note(effect, how)
            if self._audit:
                self._audit.note_end(effect, how)

    def _effect(self, held: Tool, arguments: dict[str, Any], context: CallContext, agreed: str) -> Effect:
        allowed = (agreed or why(self._policy.verdict(held, context.caller.groups), held)) if self._audit else ""
        return Effect(
            context.caller, context.run_id, context.call_id, context.line, held, arguments, allowed, context.start,
            context.key, self._directory,
        )  # fmt: skip

    def changes_nothing(self, tool: Tool) -> bool:
        """Return whether a call of *tool* needs no entry in the ledger."""
        return self._is_unrecorded(self._as_approved(tool))

    def _is_unrecorded(self, held: Tool) -> bool:
        return (held.pack == "ot" and held.full_name not in OT_EFFECTS) or self._only_reads(held)

    def _only_reads(self, held: Tool) -> bool:
        """Whether the tool, or the user, says that it only reads."""
        return bool(held.read_only) or self._policy.is_read_only(held.full_name)

    async def _carry_out(self, tool: Tool, arguments: dict[str, Any], context: CallContext, key: str) -> Any:
        clock = context.clock or Deadline(context.deadline)
        seconds = min(tool.timeout or self._call_seconds, max(clock.seconds_left, 0.0))
        context.clock, context.deadline, context.key = clock, time.monotonic() + seconds, key
        backend = self._backends[tool.backend]
        begin: Callable[[Tool, dict[str, Any], CallContext], Begun] | None = getattr(backend, "begin", None)
        # Else in its own task: a tool that ignores its cancellation is abandoned, and the run is not held up.
        task = begin(tool, arguments, context) if begin else eager_task(backend.call(tool, arguments, context))
        try:
            if not task.done():
                await _wait(task, clock, seconds)
            if not task.done():
                raise ToolTimeout(tool.full_name, seconds)
            if task.cancelled():
                # The tool's own doing: passed on, it would look as if the run had been cancelled.
                raise ToolFailed(tool.full_name, "CancelledError", "the tool cancelled itself")
            return task.result()
        except ToolFailed as failure:
            failure.message = failure.message[:MAX_MESSAGE]
            raise
        except (ToolError, asyncio.CancelledError):
            raise
        except AsksFirst as asked:
            # The call has found all its paths and written nothing, so it can be made again.
            await agree_to_write(asked, self._as_approved(tool), arguments, context)
            return await self._carry_out(tool, arguments, context, key)
        except Exception as unexpected:
            logger.exception("the backend of %s failed", tool.full_name)
            raise ToolFailed(tool.full_name, type(unexpected).__name__, str(unexpected)[:MAX_MESSAGE]) from None
        finally:
            if not task.done():
                await _cancel(task, tool)

    def tell(self, record: CallRecord) -> None:
        """Tell observers and the log of calls that were noted elsewhere, summed up."""
        self._report(record, "", {}, None)

    def _report(self, record: CallRecord, message: str, arguments: Mapping[str, Any], value: Any) -> None:
        if record.seconds > SLOW_SECONDS:
            logger.warning("slow call: %s took %.1f s", record.tool, record.seconds, extra=LOG_FILE_ONLY)
        if logger.isEnabledFor(logging.WARNING if record.error else logging.INFO):
            _log_call(record, message, arguments, value)
        for observer in self._observers:
            observer.finished(record)


class _ToolFacts:
    """What holds for every call of one tool, whoever calls; of a server's tool its own hints may change, and do not."""

    __slots__ = ("accepted", "is_proxied", "is_unrecorded", "names", "required", "tool")

    def __init__(self, tool: Tool, is_unrecorded: bool) -> None:
        self.tool = tool
        self.is_proxied = tool.source.startswith(PROXY)
        self.is_unrecorded = is_unrecorded and not self.is_proxied
        self.names = frozenset(one.name for one in tool.parameters if one.kind in ("any", "keyword"))
        self.required = frozenset(one.name for one in tool.parameters if one.required)
        plain = not self.is_proxied and tool.input_schema is None
        self.accepted = read_accepted(tool) if plain else None


def _holds_mark(arguments: Mapping[str, Any]) -> bool:
    """Return whether what stands in the place of a secret is in *arguments*, wherever."""
    try:
        # Written out at once, and never read: to walk over a million parts would hold up everybody.
        return MARK.encode() in pickle.dumps(arguments)
    except (pickle.PicklingError, AttributeError, TypeError):  # the caller's own objects, in the same process
        return MARK in repr(arguments)


def _with_agreement(call: CallTool, agreed: Mapping[str, str]) -> CallTool:
    """Return a function that calls tools as *call* does, without asking about those in *agreed*."""

    async def call_agreed(pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        # Set for that one call: what another tool begins meanwhile may outlive it.
        token = _agreed_for.set(agreed if f"{pack}.{name}" in agreed else NOTHING_AGREED)
        try:
            return await call(pack, name, args, kwargs)
        finally:
            _agreed_for.reset(token)

    return call_agreed


def _seconds_asking(context: CallContext) -> float:
    """Return how long the run has waited for its user's answers so far."""
    return context.clock.asked_seconds if context.clock else 0.0


def _log_call(record: CallRecord, message: str, arguments: Mapping[str, Any], value: Any) -> None:
    """Log the call as a span."""
    fields: dict[str, Any] = {"client": record.caller.client, "run": record.run_id, "resultLen": record.chars}
    if not record.error:
        fields["result"] = cut_result(value, record.chars)
    if record.tool.startswith("ot."):
        name, fields = record.tool, {**OT_DEFAULTS.get(record.tool, {}), **arguments, **fields}
    else:
        name, fields = "tool.call", {"tool": record.tool, "arguments": cut_arguments(arguments), **fields}
    log_span(logger, logging.INFO, name, record.seconds, record.error, message, fields)


async def _wait(task: Begun, clock: Deadline, seconds: float) -> None:
    """Wait until *task* has ended or its time is over; cancelling the wait does not cancel the task."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake(task: Begun | None = None) -> None:
        if task and not task.cancelled():
            task.exception()  # if the run was cancelled, nobody else retrieves it, which asyncio would report
        if not ended.done():
            ended.set_result(None)

    task.add_done_callback(wake)
    timer = clock.start_timer(seconds, wake)
    try:
        await ended
    finally:
        timer.cancel()


async def _cancel(task: Begun, tool: Tool) -> None:
    task.cancel()
    if not task.done():
        with anyio.CancelScope(shield=True):
            await _wait(task, Deadline.after(CANCEL_GRACE_SECONDS), CANCEL_GRACE_SECONDS)
    if not task.done():
        logger.warning("%s ignored its cancellation and was abandoned", tool.full_name)
