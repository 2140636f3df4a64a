"""PendingLogins: logins under way, where every replica finds them, each step of each for one use."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from onetool_team.state.shared_state import SharedState
from onetool_team.state.state_keys import NotSealed, StateKeys
from ot.proxied.auth.browser_return import CallbackAnswer

LIFE_SECONDS = 600.0
"""How long a link is good, and how long the way through the browser may take."""
TRIES = 3
"""Codes that may be typed before the link is worth nothing."""
OUTCOME_SECONDS = 5.0
"""How long a page waits to say how the login ended; it cannot know before the client says that its user agreed."""
ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""No characters that look alike."""
CODE_LENGTH = 6


@dataclass(frozen=True, slots=True)
class PendingLogin:
    """A login that a run waits for."""

    server: str
    principal: str
    address: str = field(repr=False)
    """Of the authorization server, with everything that it is asked."""
    state: str = field(repr=False)
    code: str = field(repr=False)
    """The hash of the code that the principal's client shows."""
    tries: int = TRIES
    browser: str = field(default="", repr=False)
    """The hash of the secret in the cookie of the browser that left, once it has."""


class PendingLogins:
    """The book of all replicas; nothing in it can be read or forged without their keys."""

    def __init__(self, state: SharedState, keys: StateKeys) -> None:
        """Keep it in *state*, sealed with *keys*."""
        self._state = state
        self._keys = keys

    async def begin(self, server: str, principal: str, address: str) -> tuple[str, str]:
        """Return the link and the code that lead to *address*; each method raises StateUnavailable."""
        link, code = secrets.token_urlsafe(32), "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
        state = CallbackAnswer.from_address(address).state
        await self._set(_start_key(link), PendingLogin(server, principal, address, state, _hash(code)))
        return link, f"{code[:3]}-{code[3:]}"

    async def waiting(self, link: str) -> PendingLogin | None:
        """Return the login that *link* leads to; it stays good for one use."""
        return self._unseal(_start_key(link), await self._state.get(_start_key(link)))

    async def leave(self, link: str, typed: str) -> tuple[PendingLogin, str] | PendingLogin | None:
        """Let a browser leave: return the login and the secret of its cookie; the link is used up.

        Without the right code, return the login alone while there are tries left, and then nothing.
        """
        key = _start_key(link)
        found = self._unseal(key, await self._state.pop(key))
        if found is None:
            return None
        if not hmac.compare_digest(found.code, _hash(_normal(typed))):
            again = replace(found, tries=found.tries - 1)
            if not again.tries:
                return None
            await self._set(key, again)
            return again
        secret = secrets.token_urlsafe(32)
        gone = replace(found, browser=_hash(secret))
        await self._set(_state_key(gone.state), gone)
        return gone, secret

    async def come_back(self, answer: CallbackAnswer, secret: str) -> PendingLogin | None:
        """Pass the answer of the browser that left on to the run that waits; nothing for any other browser."""
        key = _state_key(answer.state)
        found = self._unseal(key, await self._state.get(key))
        if found is None or not hmac.compare_digest(found.browser, _hash(secret)):
            return None
        if await self._state.pop(key) is None:
            return None  # another one was quicker
        mailbox = _mailbox("answer", answer.state)
        await self._state.send(mailbox, self._keys.seal(mailbox, _to_json(asdict(answer))), LIFE_SECONDS)
        return found

    async def answer(self, state: str, seconds: float) -> CallbackAnswer:
        """Return what the browser brought back.

        Raises:
            TimeoutError: Nothing within *seconds*.
        """
        mailbox = _mailbox("answer", state)
        sealed = await self._state.receive(mailbox, seconds)
        if sealed is None:
            raise TimeoutError
        return CallbackAnswer(**json.loads(self._keys.unseal(mailbox, sealed)))

    async def end(self, link: str, state: str, why: str) -> None:
        """Forget a login that is over; *why* it failed is for the page that waits, and empty where it did not."""
        await self._state.delete(_start_key(link))
        await self._state.delete(_state_key(state))
        mailbox = _mailbox("outcome", state)
        await self._state.send(mailbox, self._keys.seal(mailbox, why.encode()), LIFE_SECONDS)

    async def outcome(self, state: str) -> str | Literal[False]:
        """Return why a login failed, and nothing where it did not; False where nobody knows yet."""
        mailbox = _mailbox("outcome", state)
        sealed = await self._state.receive(mailbox, OUTCOME_SECONDS)
        return False if sealed is None else self._keys.unseal(mailbox, sealed).decode()

    async def _set(self, key: str, login: PendingLogin) -> None:
        await self._state.set(key, self._keys.seal(key, _to_json(asdict(login))), LIFE_SECONDS)

    def _unseal(self, key: str, sealed: bytes | None) -> PendingLogin | None:
        if sealed is None:
            return None
        try:
            return PendingLogin(**json.loads(self._keys.unseal(key, sealed, int(LIFE_SECONDS))))
        except NotSealed:
            return None


def _to_json(data: dict[str, Any]) -> bytes:
    return json.dumps(data).encode()


def _normal(typed: str) -> str:
    return "".join(sign for sign in typed.upper() if sign in ALPHABET)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _start_key(link: str) -> str:
    return f"oauth-start:{_hash(link)}"


def _state_key(state: str) -> str:
    return f"oauth-state:{_hash(state)}"


def _mailbox(kind: str, state: str) -> str:
    return f"oauth-{kind}:{_hash(state)}"
