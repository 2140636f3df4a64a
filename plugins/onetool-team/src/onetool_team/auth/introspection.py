"""IntrospectedTokens: access tokens about which the authorization server is asked (RFC 7662)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import httpx2

from onetool_team.auth.claimed_identity import identity_of, is_for
from onetool_team.auth.issuer_documents import fetch_json
from onetool_team.identity import Identity, TokenRefused, TokensUncheckable
from onetool_team.kept_answers import KeptAnswers, digest_of
from onetool_team.settings import AccessTokens, Introspection

logger = logging.getLogger(__name__)

GOOD_SECONDS = 30.0
"""How long an answer is used: a token that is revoked works no longer than this."""
BAD_SECONDS = 5.0
AT_ONCE, KNOWN_AT_ONCE = 12, 4
"""Questions at a time: a flood of invented tokens must not become a flood at the authorization server.

Tokens that were good when they were last asked about have turns of their own, so that the flood does not delay them."""

type _Answer = Identity | TokenRefused


class IntrospectedTokens:
    """Asks once about a token, whoever shows it meanwhile, and keeps the answer for a moment."""

    def __init__(
        self,
        oauth: AccessTokens,
        endpoint: Introspection,
        audience: str,
        client: httpx2.AsyncClient,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Ask *endpoint* over *client*; accept what is for *audience*."""
        self._oauth = oauth
        self._audience = audience
        self._url = endpoint.url
        # As RFC 6749 has it: both are form-encoded before they are joined.
        self._auth = httpx2.BasicAuth(quote(endpoint.client_id, safe=""), quote(endpoint.client_secret, safe=""))
        self._client = client
        self._clock = clock
        # Apart from each other: no number of invented tokens pushes a good one out.
        self._good, self._refused = KeptAnswers[Identity](clock), KeptAnswers[TokenRefused](clock)
        self._asking: dict[bytes, asyncio.Task[_Answer]] = {}
        self._turn, self._known_turn = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(KNOWN_AT_ONCE)

    async def identify(self, token: str) -> Identity:
        """Return whom *token* is about.

        Raises:
            TokenRefused: It is not active, or not for this server.
            TokensUncheckable: The authorization server does not answer.
        """
        digest = digest_of(token)
        answer = (
            self._good.get(digest) or self._refused.get(digest) or await asyncio.shield(self._ask_once(digest, token))
        )
        if isinstance(answer, TokenRefused):
            raise TokenRefused(str(answer), answer.error)
        return answer

    async def aclose(self) -> None:
        """Ask no more."""
        tasks = [*self._asking.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _ask_once(self, digest: bytes, token: str) -> asyncio.Task[_Answer]:
        """Return the question about the token that is under way, or a new one."""
        if digest not in self._asking:
            task = self._asking[digest] = asyncio.create_task(self._ask(digest, token))
            task.add_done_callback(lambda task: self._on_end(digest, task))
        return self._asking[digest]

    def _on_end(self, digest: bytes, task: asyncio.Task[_Answer]) -> None:
        del self._asking[digest]
        if not task.cancelled():
            task.exception()  # who asked may be gone, and nobody else takes it

    async def _ask(self, digest: bytes, token: str) -> _Answer:
        form = {"token": token, "token_type_hint": "access_token"}
        async with self._known_turn if digest in self._good else self._turn:
            try:
                told = await fetch_json(self._client, self._url, data=form, auth=self._auth)
            except TokensUncheckable as error:
                logger.warning("a token could not be checked: %s", error)
                raise
        answer, until = self._judge(told)
        if isinstance(answer, TokenRefused):
            self._good.forget(digest)
            self._refused.put(digest, answer, until)
        else:
            self._good.put(digest, answer, until)
        return answer

    def _judge(self, told: Mapping[str, Any]) -> tuple[_Answer, float]:
        """Return what the answer means, and until when."""
        now = self._clock()
        try:
            self._check(told, now)
            answer = identity_of(told, self._oauth)
        except TokenRefused as refusal:
            return refusal, now + BAD_SECONDS
        expiry: float = told.get("exp", now + GOOD_SECONDS)
        return answer, min(now + GOOD_SECONDS, max(expiry, now))

    def _check(self, told: Mapping[str, Any], now: float) -> None:
        if told.get("active") is not True:
            raise TokenRefused("the token is not active")
        if told.get("iss", self._oauth.issuer) != self._oauth.issuer:
            raise TokenRefused("the token is of another issuer")
        if not is_for(told.get("aud"), self._audience):
            raise TokenRefused("the token is for another audience")
        for claim, sign in (("exp", -1), ("nbf", 1)):
            at: Any = told.get(claim, now)
            if isinstance(at, bool) or not isinstance(at, int | float):
                raise TokenRefused(f"the token's claim {claim!r} is not a time")
            if sign * (at - now) > self._oauth.leeway_seconds:
                raise TokenRefused("the token has expired" if claim == "exp" else "the token is not valid yet")
