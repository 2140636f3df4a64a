"""Consent: what the user of one run has said about the tools that ask first."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ot.errors import CannotAsk, ConfigError, NotApproved
from ot.execution.ask_user import Answer, AskUser
from ot.execution.call_context import CallContext
from ot.execution.consent_question import MOST_CALLS, Foreseen, consent_question
from ot.execution.deadline import Deadline
from ot.execution.one_question import OneQuestion
from ot.registry.tool import Tool

logger = logging.getLogger(__name__)

ARRIVAL_SECONDS = 0.1
"""The other calls of a gather come within moments of the first; the question counts them."""

AllowAlways = Callable[[str], Awaitable[None]]
"""Writes a pattern into ``policy.allow`` of the user's own configuration; raises ConfigError."""


@dataclass
class _Said:
    """What was said about one tool, and how many calls of it were let through."""

    most: int = 0
    no: str = ""
    made: int = 0

    def spend(self, tool: Tool) -> None:
        if self.no:
            raise NotApproved(tool.full_name, self.no)
        if self.made >= self.most:
            calls = "1 call" if self.most == 1 else f"{self.most} calls"
            why = f"the user allowed {calls} of it in this run, and {self.made} were let through, no more"
            raise NotApproved(tool.full_name, why)
        self.made += 1


class Consent:
    """Asks once a tool, and holds a run to the answer; nothing that a program says is an answer."""

    def __init__(
        self,
        ask: AskUser | None,
        deadline: Deadline,
        *,
        calls: int = 10,
        redact: Callable[[str], str] = str,
        always: AllowAlways | None = None,
    ) -> None:
        """Put questions to *ask*; a yes is good for *calls* calls unless the user says another number."""
        self.ask: AskUser = OneQuestion(ask, deadline)
        self._calls = calls
        self._redact = redact
        self._always = always
        self._said: dict[str, _Said] = {}
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def require(self, tool: Tool, arguments: Mapping[str, Any], context: CallContext) -> None:
        """Return when the user allows this call.

        Raises:
            NotApproved: The user does not, did so for fewer calls, or cannot be asked.
        """
        name = tool.full_name
        # Calls that come while the question waits are let through or refused by its answer.
        async with self._asking[name]:
            if name not in self._said:
                foreseen = await _foreseen(tool, context)
                self._said[name] = await self._answered(tool, arguments, foreseen)
        self._said[name].spend(tool)

    async def _answered(self, tool: Tool, arguments: Mapping[str, Any], foreseen: Foreseen) -> _Said:
        question = consent_question(
            tool, arguments, foreseen, calls=self._calls, always=self._always is not None, redact=self._redact
        )
        try:
            answer = await self.ask(question)
        except CannotAsk as error:
            return _Said(no=f"it asks first, and {error}. {how_to_allow(tool.full_name)}")
        return await self._understood(tool, answer)

    async def _understood(self, tool: Tool, answer: Answer) -> _Said:
        """Return what the answer means; whatever is not clearly a yes is a no."""
        decision = answer.content.get("decision") if answer.action == "accept" else None
        up_to: Any = answer.content.get("up_to", self._calls)
        if decision == "always" and self._always:
            return await self._allowed_always(tool, self._always)
        # JSON knows no difference between 10 and 10.0; true is no number.
        if decision == "allow" and isinstance(up_to, int | float) and not isinstance(up_to, bool) and up_to >= 1:
            return _Said(most=int(min(up_to, MOST_CALLS)))
        return _Said(no="the user said no, which holds for the whole run")

    async def _allowed_always(self, tool: Tool, always: AllowAlways) -> _Said:
        try:
            await always(tool.full_name)
        except ConfigError as error:
            logger.warning("%s could not be allowed for good: %s", tool.full_name, error)
        return _Said(most=MOST_CALLS)


async def _foreseen(tool: Tool, context: CallContext) -> Foreseen:
    """Return what is known of the calls to come, when those that come at once have come."""
    if context.foresee is None:
        return Foreseen()
    before, now = Foreseen(), context.foresee(tool.full_name, context.line)
    while now.waiting > before.waiting:
        await asyncio.sleep(ARRIVAL_SECONDS)
        before, now = now, context.foresee(tool.full_name, context.line)
    return now


def how_to_allow(tool: str) -> str:
    """Return the words that tell how the user can allow *tool* beforehand."""
    line = f'policy: {{allow: ["{tool}"]}}'
    return f"To allow it, the user runs 'onetool allow {tool}', or writes {line} into ~/.onetool/onetool.yaml"
