"""AskedLogins: a login in the middle of a run, where the client of the run can show its user an address to open."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace

from ot.errors import CannotAsk, LoginFailed, LoginNeeded
from ot.execution.caller import AskUser, Caller, Question
from ot.execution.deadline import Deadline
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.browser_return import BrowserReturn, Invitation, OpenReturn
from ot.visible_text import quote

CALLBACK_SECONDS = 180.0
"""How long a person may take from agreeing to log in until the browser comes back."""
MOST_REMEMBERED = 1000
AGAIN = "run the program again, and log in when your client asks you to"

type _Once = tuple[str, str, str]
"""The run, the account and the scope that were asked about."""


class AskedLogins:
    """Repeats calls that met "login needed", once their user has logged in; no run asks twice for the same."""

    def __init__(
        self, seconds: float = CALLBACK_SECONDS, open_return: OpenReturn | None = None, advice: str = ""
    ) -> None:
        """Wait no longer than *seconds* for a person who agreed to log in.

        *open_return* leads browsers back where that is not a port of this machine; *advice* is given there in place
        of the command.
        """
        self._seconds = seconds
        self._open_return = open_return or _to_this_machine
        self._advice = advice
        self._made: defaultdict[str, int] = defaultdict(int)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._asked: dict[_Once, None] = {}

    async def retry_after_login[T](
        self,
        account: ServerAccount,
        caller: Caller,
        work: Callable[[], Awaitable[T]],
        run: str = "",
        clock: Deadline | None = None,
    ) -> T:
        """Return the result of *work*, retried after a login if it needs one.

        *run* asks once for the same; the time that its person takes is not that of its *clock*.

        Raises:
            LoginNeeded: Nobody can be asked, nobody agreed, or the login did not come to its end.
            ToolError: As *work* does.
        """
        before = self._made[account.key]
        try:
            return await work()
        except LoginNeeded as needed:
            # A call that may have taken effect is not repeated, even after a login.
            if not caller.ask or not caller.opens or needed.unknown:
                raise self._advise(needed) from None
            once = (run, account.key, needed.scope) if run else None
            with clock.pause() if clock else nullcontext():
                await self._log_in(account, needed, before, once, caller.ask)
        return await work()

    async def _log_in(
        self, account: ServerAccount, needed: LoginNeeded, before: int, once: _Once | None, ask: AskUser
    ) -> None:
        """Wait until the account has been logged in since *before*, by this call or by another."""
        async with self._turns[account.key]:
            if self._made[account.key] != before:
                return
            if once and once in self._asked:
                raise self._advise(needed, AGAIN)
            if once:
                self._remember(once)
            await self._login(account, needed, ask)
            self._made[account.key] += 1

    def _remember(self, once: _Once) -> None:
        self._asked[once] = None
        if len(self._asked) > MOST_REMEMBERED:
            del self._asked[next(iter(self._asked))]

    async def _login(self, account: ServerAccount, needed: LoginNeeded, ask: AskUser) -> None:
        from ot.proxied.auth.login import login  # noqa: PLC0415 - imports the protocol's library

        refusals: list[str] = []

        async def show(url: str) -> None:
            invitation = await back.invite(url)
            if why := await _why_refused(ask, _question(account, needed, invitation)):
                refusals.append(why)
                raise CannotAsk(why)

        try:
            async with self._open_return(account, self._seconds) as back:
                await login(back.account, show, back.receive, scope=needed.scope)
        except (CannotAsk, LoginFailed, OSError) as error:
            why = refusals[0] if refusals else str(error)
            raise self._advise(LoginNeeded(needed.server, why, needed.scope), AGAIN) from None

    def _advise(self, needed: LoginNeeded, advice: str = "") -> LoginNeeded:
        return replace(needed, advice=advice or self._advice) if self._advice else needed


def _to_this_machine(account: ServerAccount, seconds: float) -> BrowserReturn:
    from ot.proxied.auth.loopback import LoopbackCallback  # noqa: PLC0415 - few runs log in

    return LoopbackCallback(account, seconds)


async def _why_refused(ask: AskUser, question: Question) -> str:
    """Return why the person did not agree to open the address, or nothing."""
    try:
        answer = await ask(question)
    except CannotAsk as error:
        return str(error)
    return "" if answer.action == "accept" else "the user did not agree to log in"


def _question(account: ServerAccount, needed: LoginNeeded, invitation: Invitation) -> Question:
    more = f", and to allow {quote(needed.scope)}" if needed.scope else ""
    message = f"The server {quote(account.server)} asks you to log in{more}. {invitation.words}"
    return Question(message, {}, "url", url=invitation.url)
