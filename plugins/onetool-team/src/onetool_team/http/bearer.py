"""Bearer tokens: every request shows one, and its identity travels with the request."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from onetool_team.http.answers import send_failure
from onetool_team.http.asgi import AsgiApp, Receive, Scope, Send, all_headers
from onetool_team.identity import SCOPE_KEY, Authenticator, Identity, TokenRefused, TokensUncheckable
from ot.logs import current_principal

RUN = "run"
NO_TOKEN = "the request shows no token: send the header 'Authorization: Bearer <token>'"
NO_RUN = "the token is good, but not for this: it lacks the scope 'run'"
UNCHECKABLE = "the token cannot be checked now: what would tell is unreachable. Try again later"


class Bearer:
    """Lets requests through whose token is good for runs."""

    def __init__(
        self, app: AsgiApp, authenticator: Authenticator, challenge: Callable[[TokenRefused | None], str]
    ) -> None:
        """Ask *authenticator*; *challenge* returns what a refusal says in ``WWW-Authenticate``."""
        self._app = app
        self._authenticator = authenticator
        self._challenge = challenge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or say what is wrong with the token."""
        token = _token(scope)
        if not token:
            await self._refuse(scope, send, None)
            return
        try:
            identity = scope[SCOPE_KEY] = await self._identify(token)
        except TokenRefused as refused:
            await self._refuse(scope, send, refused)
        except TokensUncheckable:
            later = [(b"retry-after", b"5")]
            await send_failure(scope, send, HTTPStatus.SERVICE_UNAVAILABLE, UNCHECKABLE, later)
        else:
            logged = current_principal.set(identity.principal)
            try:
                await self._app(scope, receive, send)
            finally:
                current_principal.reset(logged)

    async def _identify(self, token: str) -> Identity:
        identity = await self._authenticator.identify(token)
        if RUN not in identity.scopes:
            raise TokenRefused(NO_RUN, "insufficient_scope")
        return identity

    async def _refuse(self, scope: Scope, send: Send, refused: TokenRefused | None) -> None:
        forbidden = refused is not None and refused.error == "insufficient_scope"
        status = HTTPStatus.FORBIDDEN if forbidden else HTTPStatus.UNAUTHORIZED
        header = (b"www-authenticate", self._challenge(refused).encode("latin-1", "replace"))
        await send_failure(scope, send, status, str(refused or NO_TOKEN), [header])


def _token(scope: Scope) -> str:
    given = all_headers(scope, b"authorization")
    kind, _, token = given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if kind.lower() == "bearer" else ""
