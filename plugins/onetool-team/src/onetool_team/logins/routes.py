"""What answers at /oauth/start and /oauth/callback: pages for browsers, which show no token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from onetool_team.http.asgi import Receive, Scope, Send
from onetool_team.http.routes import Route
from onetool_team.logins.pages import HEADERS, message_page, start_page
from onetool_team.logins.pending_logins import LIFE_SECONDS, PendingLogin, PendingLogins
from onetool_team.logins.team_return import CALLBACK, START
from onetool_team.state.shared_state import StateUnavailable
from onetool_team.state.state_keys import NotSealed
from ot.proxied.auth.browser_return import CallbackAnswer

MAX_BODY = 4096
MAX_PARAMETER = 4096
OVER = "It was used already, or its time is over. Run the program again in your client, which then shows a new address."
ELSEWHERE = (
    "This browser did not begin the login, or it ended already. Nothing was connected. If somebody sent you here, they "
    "tried to get access to your account."
)
DOWN = "The servers cannot reach what they share. Try again in a minute."
FOREIGN = "The form was not sent from this server's own page."


class LoginPages:
    """The pages of all logins; any replica may be asked for any of them."""

    def __init__(self, logins: PendingLogins, public_url: str) -> None:
        """Know *logins*, and the address that browsers know this server by."""
        self._logins = logins
        self._url = urlsplit(public_url)

    def routes(self) -> dict[str, Route]:
        """Return what answers at which path."""
        return {START: Route(_Page(self.start), ("GET", "POST")), CALLBACK: Route(_Page(self.callback), ("GET",))}

    async def start(self, request: Request) -> Response:
        """Show whose login a link is; with the code, send the browser on its way."""
        link = request.query_params.get("login", "")[:MAX_PARAMETER]
        if request.method == "POST":
            return await self._leave(request, link)
        # Looking does not use the link up: programs of mail and chat look at addresses, too.
        found = await self._logins.waiting(link)
        return _start_page(found) if found else _message(HTTPStatus.NOT_FOUND, "This login is over", OVER)

    async def _leave(self, request: Request, link: str) -> Response:
        if request.headers.get("origin", "") != f"{self._url.scheme}://{self._url.netloc}":
            return _message(HTTPStatus.FORBIDDEN, "Not from here", FOREIGN)
        left = await self._logins.leave(link, await _read_code(request))
        if left is None:
            return _message(HTTPStatus.NOT_FOUND, "This login is over", OVER)
        if isinstance(left, PendingLogin):
            return _start_page(left, wrong=True)
        login, secret = left
        response = RedirectResponse(login.address, HTTPStatus.SEE_OTHER, HEADERS)
        self._set_cookie(response, login.state, secret, int(LIFE_SECONDS))
        return response

    async def callback(self, request: Request) -> Response:
        """Take what the authorization server says, from the browser that left and from no other."""
        answer = CallbackAnswer.from_address(str(request.url)[: 4 * MAX_PARAMETER])
        secret = request.cookies.get(self._cookie(answer.state), "")
        found = await self._logins.come_back(answer, secret) if answer.is_complete and secret else None
        if found is None:
            return _message(HTTPStatus.FORBIDDEN, "Not your login", ELSEWHERE)
        response = await self._tell_outcome(found)
        self._set_cookie(response, answer.state, "", 0)
        return response

    async def _tell_outcome(self, login: PendingLogin) -> Response:
        why = await self._logins.outcome(login.state)
        who = name_of(login.principal)
        if why is False:
            return _message(HTTPStatus.OK, "Almost done", f"Go back to your client: it logs {who} in there.")
        if why:
            return _message(HTTPStatus.BAD_GATEWAY, "You are not logged in", f"{login.server}: {why}"[:500])
        return _message(
            HTTPStatus.OK, "You are logged in", f"OneTool now uses {login.server} for {who}. You can close this page."
        )

    def _cookie(self, state: str) -> str:
        """Return the name of a login's own cookie: a browser may have several under way."""
        name = f"onetool-login-{state[:12]}"
        return f"__Host-{name}" if self._url.scheme == "https" else name

    def _set_cookie(self, response: Response, state: str, secret: str, seconds: int) -> None:
        # Lax, not Strict: the browser comes back by a link of the authorization server's.
        response.set_cookie(
            self._cookie(state),
            secret,
            max_age=seconds,
            path="/",
            secure=self._url.scheme == "https",
            httponly=True,
            samesite="lax",
        )


class _Page:
    """Answers with a page, also where what it needs cannot be reached."""

    def __init__(self, answer: Callable[[Request], Awaitable[Response]]) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._answer(Request(scope, receive))
        except (StateUnavailable, NotSealed):
            response = _message(HTTPStatus.SERVICE_UNAVAILABLE, "Not now", DOWN)
        await response(scope, receive, send)


def name_of(principal: str) -> str:
    """Return what a principal is called by people: the part after who vouches for it."""
    return principal.partition("|")[2] or principal


def _start_page(login: PendingLogin, *, wrong: bool = False) -> Response:
    host = urlsplit(login.address).netloc.rpartition("@")[2]  # what stands before it is not where the browser goes
    html = start_page(login.server, name_of(login.principal), host, login.tries if wrong else None)
    # Its form must show where it comes from; other sites still learn nothing.
    headers = {**HEADERS, "referrer-policy": "same-origin"}
    return HTMLResponse(html, HTTPStatus.FORBIDDEN if wrong else HTTPStatus.OK, headers)


def _message(status: HTTPStatus, title: str, text: str) -> Response:
    return HTMLResponse(message_page(title, text), status, HEADERS)


async def _read_code(request: Request) -> str:
    """Return the code in a form, of which no more than a little is read."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            return ""
    return parse_qs(body.decode("latin-1")).get("code", [""])[0]
