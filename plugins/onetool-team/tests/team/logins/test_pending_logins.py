"""Logins under way: each step is for one use, also when two browsers are equally quick."""

from __future__ import annotations

import asyncio

import pytest

from onetool_team.logins.pending_logins import PendingLogin, PendingLogins
from onetool_team.state.shared_state import SharedState
from onetool_team.state.state_keys import StateKeys
from ot.proxied.auth.browser_return import CallbackAnswer

pytestmark = pytest.mark.anyio

ADDRESS = "https://login.example/authorize?state=abc&code_challenge=x"
ANSWER = CallbackAnswer("abc", "a code")


async def test_of_many_who_leave_and_come_back_at_once_one_does(states: tuple[SharedState, SharedState]) -> None:
    keys = StateKeys.ephemeral()
    books = [PendingLogins(state, keys) for state in states] * 4
    link, code = await books[0].begin("guarded", "issuer|ann", ADDRESS)
    left = await asyncio.gather(*(book.leave(link, code) for book in books))
    ((login, secret),) = [one for one in left if isinstance(one, tuple)]
    assert (login.server, login.principal, login.address) == ("guarded", "issuer|ann", ADDRESS)
    assert [one for one in left if isinstance(one, PendingLogin)] == []
    back = await asyncio.gather(*(book.come_back(ANSWER, secret) for book in books))
    assert len([one for one in back if one]) == 1
    assert await books[0].answer("abc", 1) == ANSWER


async def test_what_is_shared_shows_nothing_and_cannot_be_forged(states: tuple[SharedState, SharedState]) -> None:
    here, there = (PendingLogins(state, StateKeys.ephemeral()) for state in states)
    link, code = await here.begin("guarded", "issuer|ann", ADDRESS)
    assert (await there.waiting(link), await there.leave(link, code)) == (None, None)  # other keys
    assert repr(await here.waiting("guessed")) == "None"


async def test_a_login_that_nobody_answers_is_not_waited_for_longer(states: tuple[SharedState, SharedState]) -> None:
    with pytest.raises(TimeoutError):
        await PendingLogins(states[0], StateKeys.ephemeral()).answer("abc", 0.05)
