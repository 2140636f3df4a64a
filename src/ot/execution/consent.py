"""RunConsent: what the user of one run is asked about the tools that ask first, and has said."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from ot.brief_repr import quote_text
from ot.errors import CannotAsk, ConfigError, NotApproved
from ot.execution.call_context import CallContext, CallForecast
from ot.execution.caller import Answer, AskUser, Question
from ot.execution.deadline import Deadline
from ot.files.run_writes import AsksFirst
from ot.registry.proxy_target import PROXY
from ot.registry.tool import Tool

if TYPE_CHECKING:
    from ot.execution.question_form import ReadText

logger = logging.getLogger(__name__)

ARRIVAL_SECONDS = 0.1
"""The other calls of a gather come within moments of the first; the question counts them."""

MAX_LINE = 200
MAX_CALLS = 10_000
"""What "always" allows within one run, and the highest number that can be allowed."""
MAX_QUESTIONS = 20
"""A run that asks more often than this wears its user out until yes is said to anything."""
MAX_QUESTION_BYTES = 64 << 10

AllowAlways = Callable[[str], Awaitable[None]]
"""Writes a pattern into ``policy.allow`` of the user's own configuration, or keeps it elsewhere; raises ConfigError."""

AlwaysAllowed = Callable[[str], Awaitable[bool]]
"""Returns whether whoever asks has allowed a tool for good, where that is not kept in the policy itself."""


@dataclass(frozen=True)
class _Offer:
    """How many calls a plain yes allows, and the highest number that the form lets one say instead."""

    calls: int = 1
    most: int = 1


@dataclass
class _Said:
    """What was said about one tool, and how many calls of it were let through."""

    most: int = 0
    no: str = ""
    made: int = 0
    always: bool = False
    is_limit: bool = False
    """Whether the user said a smaller number than a plain yes allows: the calls beyond it are refused, not asked."""

    @property
    def asks_again(self) -> bool:
        """Whether a plain yes is used up."""
        return self.made >= self.most and not (self.no or self.always or self.is_limit)

    def spend(self, tool: Tool) -> None:
        if self.no:
            raise NotApproved(tool.full_name, self.no)
        if self.made >= self.most:
            why = f"the user allowed {_count(self.most)} of it in this run, and {self.made} have been made"
            raise NotApproved(tool.full_name, why)
        self.made += 1


class RunConsent:
    """Asks about each tool, and holds a run to the answer; nothing that a program says is an answer."""

    def __init__(
        self,
        ask: AskUser | None,
        deadline: Deadline,
        *,
        calls: int = 10,
        redact: Callable[[str], str] = str,
        always: AllowAlways | None = None,
        allowed: AlwaysAllowed | None = None,
        advise: Callable[[str], str] | None = None,
        read_text: ReadText | None = None,
    ) -> None:
        """Put questions to *ask*; where nobody knows how many calls come, a yes allows *calls* before it asks again.

        What is *allowed* already is not asked for; *advise* says how a tool can be allowed where nobody can be asked.
        *read_text* reads a file that a call would replace, to show the difference.
        """
        self.ask: AskUser = OneQuestion(ask, deadline)
        self._calls = calls
        self._redact = redact
        self._always = always
        self._allowed = allowed
        self._advise = advise or how_to_allow
        self._read_text = read_text
        self._said: dict[str, _Said] = {}
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def require(self, tool: Tool, arguments: Mapping[str, Any], context: CallContext, need: str = "") -> str:
        """Return, when the user allows this call, whether by "consent" for this run or for "always".

        *need* is the tool whose permission is asked for, where it is not that of *tool* itself.

        Raises:
            NotApproved: The user does not, did so for fewer calls, or cannot be asked.
        """
        name = tool.full_name
        # Calls that come while the question waits are let through or refused by its answer.
        async with self._asking[name]:
            said = self._said.get(name)
            if said is None or said.asks_again:
                foreseen, made = await _foreseen(tool, context), said.made if said else 0
                said = self._said[name] = await self._ask_user(tool, arguments, foreseen, made, need)
            said.spend(tool)
        return "always" if said.always else "consent"

    async def require_again(self, tool: Tool, arguments: Mapping[str, Any], why: str, advice: str) -> None:
        """Ask the user to allow this one call, saying *why* it is doubtful; a yes covers no other.

        Raises:
            NotApproved: The user does not, or cannot be asked; then *advice* says what to do.
        """
        alone = CallForecast(alone=True)
        question = consent_question(tool, arguments, alone, always=False, redact=self._redact, why=self._redact(why))
        try:
            answer = await self.ask(question)
        except CannotAsk as error:
            raise NotApproved(tool.full_name, f"{why}; {error}. {advice}") from None
        (await self._interpret(tool, answer, _Offer())).spend(tool)

    async def _ask_user(
        self, tool: Tool, arguments: Mapping[str, Any], foreseen: CallForecast, made: int, need: str
    ) -> _Said:
        asked_for = need or tool.full_name
        if self._allowed and await self._allowed(asked_for):
            return _Said(most=MAX_CALLS, always=True)
        # Who allows the tool for good has not allowed what it needs, and would be asked again.
        always = self._always is not None and not need
        question = consent_question(
            tool, arguments, foreseen, calls=self._calls, made=made, always=always, redact=self._redact, need=need,
            before=await self._text_before(tool, arguments),
        )  # fmt: skip
        try:
            answer = await self.ask(question)
        except CannotAsk as error:
            return _Said(no=f"it asks first, and {error}. {self._advise(asked_for)}")
        return await self._interpret(tool, answer, _offer(foreseen, self._calls, made), made, need)

    async def _text_before(self, tool: Tool, arguments: Mapping[str, Any]) -> str | None:
        """Return the text of the file that the call would replace, as far as there is one."""
        path = arguments.get("path")
        if self._read_text is None or tool.full_name != "file.write" or not isinstance(path, str):
            return None
        return None if arguments.get("append") else await anyio.to_thread.run_sync(self._read_text, path)

    async def _interpret(self, tool: Tool, answer: Answer, offer: _Offer, made: int = 0, need: str = "") -> _Said:
        """Interpret the answer; anything that is not clearly a yes is a no."""
        decision = answer.content.get("decision") if answer.action == "accept" else None
        up_to: Any = answer.content.get("up_to", offer.calls)
        if decision == "always" and self._always and not need:
            return await self._allow_for_good(tool, tool.full_name, self._always)
        if decision == "server" and self._always and not need and tool.source.startswith(PROXY):
            return await self._allow_for_good(tool, f"{tool.pack}.*", self._always)
        # JSON knows no difference between 10 and 10.0; true is not a number.
        if decision == "allow" and isinstance(up_to, int | float) and not isinstance(up_to, bool) and up_to >= 1:
            return _Said(most=made + int(min(up_to, MAX_CALLS)), made=made, is_limit=up_to < offer.calls)
        after = f" after {_count(made)}" if made else ""
        return _Said(no=f"the user said no{after}, which holds for the whole run")

    async def _allow_for_good(self, tool: Tool, pattern: str, always: AllowAlways) -> _Said:
        try:
            await always(pattern)
        except ConfigError as error:
            logger.warning("%s could not be allowed permanently: %s", tool.full_name, error)
        return _Said(most=MAX_CALLS, always=True)


async def _foreseen(tool: Tool, context: CallContext) -> CallForecast:
    """Return what is known about further calls, once the concurrent ones have arrived."""
    if context.foresee is None:
        return CallForecast(most=None)
    before, now = CallForecast(), context.foresee(tool.full_name, context.line)
    while now.waiting > before.waiting:
        await asyncio.sleep(ARRIVAL_SECONDS)
        before, now = now, context.foresee(tool.full_name, context.line)
    return now


async def agree_to_write(asked: AsksFirst, tool: Tool, arguments: Mapping[str, Any], context: CallContext) -> None:
    """Ask the user to agree to the names that a call would write; the answer holds for the whole run.

    Raises:
        NotApproved: The user does not, or cannot be asked.
    """
    answers, advice = context.writes.answers, how_to_allow_names(asked.names)
    if context.consent is None:
        raise NotApproved(tool.full_name, f"{asked.why}. {advice}")
    # Calls that come while a question waits may mean the same places.
    async with context.writes.asking:
        if no := next(filter(None, (answers.get(place.path) for place in asked.places)), ""):
            raise NotApproved(tool.full_name, no)
        unsaid = AsksFirst(place for place in asked.places if place.path not in answers)
        if not unsaid.places:
            return
        why = f"{unsaid.why}; a yes also holds for what else this run writes there"
        try:
            await context.consent.require_again(tool, arguments, why, advice)
        except NotApproved as error:
            answers.update((place.path, error.why) for place in unsaid.places)
            raise
        answers.update((place.path, "") for place in unsaid.places)


def how_to_allow_names(names: Sequence[str]) -> str:
    """Return the words that tell how names that begin with a dot can be allowed beforehand."""
    listed = ", ".join(json.dumps(name, ensure_ascii=False) for name in names[:10])
    line = f"security: {{dot_names: [{listed}]}}"
    return f"To allow it, whoever configures OneTool writes {line} into its onetool.yaml"


def how_to_allow(tool: str) -> str:
    """Return the words that tell how the user can allow *tool* beforehand."""
    line = f'policy: {{allow: ["{tool}"]}}'
    return f"To allow it, the user runs 'onetool allow {tool}', or writes {line} into ~/.onetool/onetool.yaml"


def how_operators_allow(tool: str) -> str:
    """Return the words that tell how *tool* can be allowed on a server that others operate."""
    return f'To allow it, ask who operates this server for policy: {{allow: ["{tool}"]}}'


def consent_question(
    tool: Tool,
    arguments: Mapping[str, Any],
    foreseen: CallForecast,
    *,
    calls: int = 1,
    made: int = 0,
    always: bool,
    redact: Callable[[str], str],
    why: str = "",
    need: str = "",
    before: str | None = None,
) -> Question:
    """Return the question: which tool, with what, from which line, how often, *why*, and the possible answers.

    *made* calls of it have been allowed and made; a yes allows *calls* where the number to come is not known. *before*
    is the text of the file that the call would write.
    """
    from ot.execution.question_form import argument_lines, tool_text  # noqa: PLC0415 - most runs ask nothing

    who = "a model" if foreseen.alone else "a program"
    needs = f", which needs the permission of {need}" if need else ""
    lines = [f"{tool_text(tool)}{needs}: {who} wants to call it.", *argument_lines(tool, arguments, redact, before)]
    if why:
        lines.append(f"Mind that {why}.")
    if foreseen.line:
        of = f" of {foreseen.file}" if foreseen.file else ""
        lines.append(f"Line {foreseen.line}{of}: {quote_text(foreseen.text, MAX_LINE, redact)}")
    offer = _offer(foreseen, calls, made)
    lines += _how_many(foreseen, offer, made)
    # Arguments and the line were redacted when they were added; the tool's own name is not a secret.
    schema = _schema(offer, always, server=always and tool.source.startswith(PROXY))
    return Question("\n".join(lines), schema, "consent", tool.full_name, arguments)


def _still_to_come(foreseen: CallForecast, made: int) -> int | None:
    """Return how many calls the program's text has left; None if it does not show, or was wrong already."""
    left = None if foreseen.most is None else foreseen.most - made
    return None if left is None or left < 1 else max(left, foreseen.waiting)


def _offer(foreseen: CallForecast, calls: int, made: int) -> _Offer:
    """Return how many calls a yes allows: all if their number is known, else *calls*, at least those that wait."""
    known = _still_to_come(foreseen, made)
    if known is None or known > MAX_CALLS:
        return _Offer(min(max(calls, foreseen.waiting), MAX_CALLS), MAX_CALLS)
    return _Offer(known, known)


def _how_many(foreseen: CallForecast, offer: _Offer, made: int) -> list[str]:
    """Describe the number of calls, and what a yes allows, as lines."""
    if offer.most == 1:
        return ["A yes allows this call."]
    known = _still_to_come(foreseen, made)
    said = [f"{_count(made)} of it {'has' if made == 1 else 'have'} been made in this run."] if made else []
    said += [f"{foreseen.waiting} calls of it are waiting for the answer."] if foreseen.waiting > 1 else []
    said += [f"The program would call it up to {known} times." if known else "It may be called any number of times."]
    if known == offer.calls:
        return [" ".join(said), f"A yes allows all {known}, or as many as you say."]
    yes = f"A yes allows {_count(offer.calls)} of it, or as many as you say; then you are asked again."
    return [" ".join(said), yes]


def _count(calls: int) -> str:
    return "1 call" if calls == 1 else f"{calls} calls"


def _schema(offer: _Offer, always: bool, server: bool) -> dict[str, Any]:
    """Return the form of the answer; the number is asked for where there is a choice."""
    asks = offer.most > 1
    choices = {"allow": "Allow, up to the number below in this run" if asks else "Allow this call"}
    choices |= {"always": "Always allow this tool"} if always else {}
    choices |= {"server": "Always allow every tool of this server"} if server else {}
    choices |= {"deny": "Do not allow"}
    decision = {"type": "string", "title": "Decision", "enum": list(choices), "enumNames": list(choices.values())}
    up_to = {"type": "integer", "title": "Calls allowed in this run", "minimum": 1}
    number = {"up_to": {**up_to, "maximum": offer.most, "default": offer.calls}} if asks else {}
    return {"type": "object", "properties": {"decision": decision, **number}, "required": ["decision"]}


class OneQuestion:
    """Asks through the way that the run was given, if there is one."""

    def __init__(self, ask: AskUser | None, deadline: Deadline) -> None:
        """Ask through *ask*, and stop the clock of *deadline* meanwhile."""
        self._ask = ask
        self._deadline = deadline
        self._turn = asyncio.Lock()
        self._left = MAX_QUESTIONS

    async def __call__(self, question: Question) -> Answer:
        """Return the answer.

        Raises:
            CannotAsk: Nobody can be asked here, nobody answered, the question cannot be sent, or the run has asked
                too often.
        """
        if self._ask is None:
            raise CannotAsk("nobody is available to answer")
        _require_sendable(question)
        with self._deadline.pause():
            async with self._turn:
                if not self._left:
                    raise CannotAsk(f"the run has asked {MAX_QUESTIONS} times already")
                self._left -= 1
                return await self._ask(question)


def _require_sendable(question: Question) -> None:
    """Check that *question* can be encoded: found out later, this would end the connection, not just the call."""
    try:
        parts = [question.message, question.url, dict(question.schema)]
        size = len(json.dumps(parts, ensure_ascii=False).encode())
    except (ValueError, TypeError, RecursionError) as error:
        raise CannotAsk(f"the question cannot be sent: {type(error).__name__}") from None
    if size > MAX_QUESTION_BYTES:
        raise CannotAsk(f"the question has {size:,} bytes, at most {MAX_QUESTION_BYTES:,} are sent")
