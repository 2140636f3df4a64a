"""Where a question of a run goes: to the client's user, to a terminal of the same user, to both, or nowhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ot.background.held_runs import HeldRun
from ot.background.questions import BackgroundQuestion
from ot.errors import CannotAsk
from ot.execution.caller import Answer, AskUser, Question
from ot.execution.waiting_questions import Asker
from ot.runtime.run_events import Progress, TellEvent
from ot.server.declining_clients import DecliningClients
from ot.server.elicitation import NO_ADDRESSES, NO_ELICITATION, OpenCall, QuestionModes
from ot.server.wire import Wire
from ot.workspace import Workspace

HOLD_SECONDS = 30.0
"""How long a call stays open for a question that waits at a terminal: a user who sees no progress hears of it from the
model, which must be answered first. The shortest limit of a known client for a call is a minute."""
TELL_SECONDS = 5.0
FAST_SECONDS = 1.0
"""A no that comes sooner than this was said by the client itself, unless somebody has answered in it before."""
NOWHERE = "questions go nowhere by the setting policy.questions"


@dataclass(frozen=True)
class QuestionPlaces:
    """Puts the questions of one run where its user's settings, its client and this system let them reach somebody."""

    workspace: Workspace
    wire: Wire
    call: OpenCall
    modes: QuestionModes
    ask_client: AskUser
    tell: TellEvent | None
    client: str
    """The client's name and version."""

    async def ask(self, question: Question) -> Answer:
        """Return the answer, from wherever it comes first.

        Raises:
            CannotAsk: Nobody can be asked, or nobody answered in time.
        """
        request = self.wire.find_request(self.call.id)
        await self.wire.tell_waiting(request, question.tool)
        try:
            return await self._ask(question)
        finally:
            # A server that is killed from here on may have made the call.
            await self.wire.tell_waiting(request, "")

    async def _ask(self, question: Question) -> Answer:
        policy = self.workspace.picture.loaded.config.policy.questions
        # A client that no longer waits for the run shows nothing of it.
        reaches = self.modes.allow(question) and not (self.call.held and self.call.held.left)
        if policy == "nowhere":
            raise CannotAsk(NOWHERE)
        if isinstance(question, BackgroundQuestion) or policy == "client":
            return await self._ask_by_client(question)
        if policy == "both" and reaches:
            return await self._ask_at_both(question)
        if policy != "auto":
            return await self._ask_at_terminal(question)
        return await self._ask_somebody(question, reaches)

    async def _ask_by_client(self, question: Question) -> Answer:
        if not self.modes.allow(question):
            raise CannotAsk(NO_ADDRESSES if question.kind == "url" else NO_ELICITATION)
        return await self.ask_client(question)

    async def _ask_somebody(self, question: Question, reaches: bool) -> Answer:
        """Ask the client's user, or a person at a terminal where the client shows nobody the question."""
        if self.workspace.paths.environ.get("CI"):  # no setting says whether somebody may sit at a terminal here
            return await self._ask_by_client(question)
        if not reaches:
            return await self._ask_at_terminal(question)
        begun = time.monotonic()
        answer = await self.ask_client(question)
        is_persons = self._is_persons(answer, begun)
        # Only counted: a client that declines by itself in one mode has the same name in another that shows a dialogue.
        DecliningClients(self.workspace.paths.global_dir).note(self.client, declined=not is_persons)
        return answer if is_persons else await self._ask_at_terminal(question)

    def _is_persons(self, answer: Answer, begun: float) -> bool:
        """Return whether somebody gave *answer*, to a question that was put at *begun*."""
        if answer.action == "accept" or time.monotonic() - begun >= FAST_SECONDS:
            self.wire.has_person = True
        return self.wire.has_person

    async def _ask_at_both(self, question: Question) -> Answer:
        """Return the first answer; a no that nobody can have given does not count."""
        begun = time.monotonic()
        client, terminal = map(asyncio.ensure_future, (self.ask_client(question), self._ask_at_terminal(question)))
        try:
            await asyncio.wait((client, terminal), return_when=asyncio.FIRST_COMPLETED)
            if terminal.done() and not terminal.exception():
                return terminal.result()
            with suppress(CannotAsk):
                answer = await client
                if self._is_persons(answer, begun):
                    return answer
            return await terminal
        finally:
            for task in (client, terminal):
                task.cancel()
            await asyncio.wait((client, terminal))

    # ---------------------------------------------------------------- at a terminal

    async def _ask_at_terminal(self, question: Question) -> Answer:
        held = self.call.held = self.call.held or HeldRun(self.call.program)

        def show_code(code: str) -> None:
            held.code, held.tool, held.message = code, question.tool, question.message
            self._tell(held)
            self.workspace.notify_desktop(question, code)

        request = self.wire.find_request(self.call.id)
        if request is not None:
            self.wire.hold(request, held)
            self.workspace.hold(held)
        asker = Asker(self.client, str(self.workspace.paths.cwd))
        seconds = self.workspace.ask_seconds
        asking = asyncio.ensure_future(self.workspace.host.waiting.ask(question, asker, seconds, show_code))
        try:
            await self._wait_with_client(asking, held, request)
            return await asking
        finally:
            asking.cancel()
            held.code = held.message = ""
            if request is not None:
                self.wire.release(request)
                self.workspace.release(held)

    async def _wait_with_client(self, asking: asyncio.Future[Answer], held: HeldRun, request: Any) -> None:
        """Say what waits, until it is answered; a client that has waited for long is answered before."""
        until = time.monotonic() + HOLD_SECONDS
        while not asking.done() and (left := until - time.monotonic()) > 0:
            await asyncio.wait((asking,), timeout=min(left, TELL_SECONDS))
            self._tell(held)
        if not asking.done() and request is not None and held.code:
            await self.wire.leave(request, _waits(held, modern=self.call.modern))

    def _tell(self, held: HeldRun) -> None:
        if self.tell and held.code and not held.left:
            what = f"{held.tool} asks first" if held.tool else "a question waits"
            self.tell(Progress(message=f"{what}; answer in a terminal: onetool answer {held.code}"))


def _waits(held: HeldRun, *, modern: bool) -> Mapping[str, Any]:
    return {
        "content": [{"type": "text", "text": held.text()}],
        "isError": False,
        "_meta": {"onetool": {"run": held.id, "state": "asks"}},
        **({"resultType": "complete"} if modern else {}),
    }
