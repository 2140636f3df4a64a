"""A login: which client it is made with, what it refuses, and that it never harms the one before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc.jwk import ECKey
from starlette.responses import JSONResponse

from free_ports import free_port
from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.browserless_user import BrowserlessUser, query_of
from oauth.loopback import LoopbackServer
from oauth.resource_server import LoopbackResourceServer
from ot.errors import AuthServerDown, LoginFailed, LoginNeeded, LoginRefused, ServerUnavailable
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.browser_return import CallbackAnswer
from ot.proxied.auth.login import login
from ot.proxied.auth.login_state import login_state
from ot.proxied.auth.logout import logout
from ot.proxied.auth.loopback import LoopbackCallback
from ot.proxied.auth.refresh import refresh_record
from ot.proxied.auth.token_record import TokenRecord
from ot.proxied.auth.token_store import TokenStore
from pace import PATIENCE
from proxied.auth.login_desk import Browser, account_at, logged_in, spec_of_account, stored
from proxied.desk import door_to

pytestmark = pytest.mark.anyio

DOCUMENT = "https://client.example/oauth/client.json"
CALLBACK = "http://127.0.0.1:41237/callback"


async def test_the_record_holds_all_that_a_later_process_needs_and_other_users_cannot_read_it(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, tmp_path: Path
):
    account = account_at(resource, tmp_path)
    await logged_in(account)
    record = stored(account)
    assert record.token_endpoint == f"{issuer.origin}/token"
    assert record.revocation_endpoint == f"{issuer.origin}/revoke"
    assert (record.resource, record.issuer.rstrip("/")) == (resource.url, issuer.origin)
    assert record.refresh_token and record.client_id and record.expires_at
    files = [file for file in account.directory.iterdir() if file.is_file()]
    assert account.directory.stat().st_mode & 0o777 == 0o700
    assert files and all(file.stat().st_mode & 0o777 == 0o600 for file in files)


async def test_a_client_of_the_settings_comes_before_a_document_and_a_document_before_registration(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, tmp_path: Path
):
    issuer.issuing.documents = {DOCUMENT: {"client_id": DOCUMENT, "redirect_uris": [CALLBACK]}}
    issuer.add_client("own", redirect_uris=[CALLBACK], secret="a secret", auth_method="client_secret_basic")
    known: dict[str, Any] = {"client_metadata_url": DOCUMENT}
    clients: list[str] = []
    for settings in (known | {"client_id": "own", "client_secret": "a secret"}, known, {}):
        record = await logged_in(account_at(resource, tmp_path, **settings))
        clients.append(record.client_id)
    assert clients[:2] == ["own", DOCUMENT]
    assert clients[2] not in clients[:2] and issuer.counts["registrations"] == 1


async def test_where_no_client_can_be_registered_the_login_says_how_to_get_one(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, tmp_path: Path
):
    issuer.issuing.dynamic_registration = False
    with pytest.raises(LoginFailed) as caught:
        await logged_in(account_at(resource, tmp_path))
    assert "servers.guarded.auth.client_id" in str(caught.value) and CALLBACK in str(caught.value)
    assert issuer.counts["/register"] == 0


async def test_the_scopes_of_the_settings_are_asked_for_in_place_of_those_that_the_server_names(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, tmp_path: Path
):
    browser = Browser()
    await logged_in(account_at(resource, tmp_path, scopes=("write",)), browser)
    asked = query_of(browser.opened[0])["scope"].split()
    assert "write" in asked and "read" not in asked


Trouble = Callable[[LoopbackAuthorizationServer, LoopbackResourceServer], None]


def _token_endpoint_down(issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer) -> None:
    issuer.outages["/token"] = "503"


def _authorization_server_gone(issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer) -> None:
    issuer.stop()


def _server_gone(issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer) -> None:
    resource.stop()


def _another_issuer(issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer) -> None:
    issuer.issuing.announced_issuer = "https://evil.example"


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        (_token_endpoint_down, AuthServerDown),
        (_authorization_server_gone, AuthServerDown),
        (_server_gone, ServerUnavailable),
        (_another_issuer, LoginFailed),
    ],
)
async def test_a_login_that_fails_leaves_the_one_before_as_it_was(
    issuer: LoopbackAuthorizationServer,
    resource: LoopbackResourceServer,
    tmp_path: Path,
    trouble: Trouble,
    kind: type[Exception],
):
    account = account_at(resource, tmp_path)
    before = await logged_in(account)
    trouble(issuer, resource)
    with pytest.raises(kind) as caught:
        await logged_in(account)
    assert type(caught.value) is kind
    assert stored(account) == before


async def test_a_person_who_says_no_and_an_answer_of_another_login_are_refused(
    resource: LoopbackResourceServer, tmp_path: Path
):
    account = account_at(resource, tmp_path)
    with pytest.raises(LoginRefused, match="access_denied"):
        await logged_in(account, Browser(""))
    browser = Browser()

    async def of_another(state: str) -> CallbackAnswer:
        return CallbackAnswer("another", code="stolen")

    with pytest.raises(LoginRefused, match="another login"):
        await login(account, browser.show, of_another)
    assert login_state(account).state == "login needed"


async def test_the_issuer_of_the_settings_is_the_only_one_that_gets_the_client_s_credentials(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, tmp_path: Path
):
    browser = Browser()
    account = account_at(resource, tmp_path, client_id="own", client_secret="a secret", issuer="https://other.example")
    with pytest.raises(LoginFailed):
        await logged_in(account, browser)
    assert not browser.opened and issuer.counts["/token"] == 0


class NamingServer(LoopbackServer):
    """An MCP server and its authorization server at one origin, which name whatever addresses it is told."""

    def __init__(self, path: str = "", **named: Any) -> None:
        super().__init__(self._answer)
        self.url = f"{self.origin}/mcp"
        self._named = named
        self._metadata_at = path or "/.well-known/oauth-authorization-server"
        self.asked: list[str] = []

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        path, named = scope["path"], self._named
        self.asked.append(path)
        documents: dict[str, dict[str, Any]] = {
            "/resource": {"resource": self.url, "authorization_servers": named.get("servers") or [self.origin]},
            "/register": {"client_id": "registered", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"},
            "/token": {"access_token": "token", "token_type": "Bearer"},
            self._metadata_at: {
                "issuer": self.origin,
                "authorization_endpoint": f"{self.origin}/authorize",
                "token_endpoint": f"{self.origin}/token",
                "registration_endpoint": f"{self.origin}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                **named.get("metadata", {}),
            },
        }
        where = named.get("resource_metadata", f"{self.origin}/resource")
        challenge = {"www-authenticate": f'Bearer resource_metadata="{where}"'} if path == "/mcp" else {}
        status = 401 if challenge else 201 if path == "/register" else 200 if path in documents else 404
        await JSONResponse(documents.get(path), status, challenge)(scope, receive, send)


class Onlooker:
    """A person whom nobody sends to an address in these tests, or who comes back from it at once."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    async def show(self, address: str) -> None:
        self.opened.append(address)

    async def receive(self, state: str) -> CallbackAnswer:
        return CallbackAnswer(state, code="code")


@asynccontextmanager
async def other_machine() -> AsyncGenerator[tuple[str, list[Any]]]:
    """Yield the origin of an internal service that is not at the server's own host, and who connected to it."""
    came: list[Any] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(await reader.read(1000))
        writer.close()

    server = await asyncio.start_server(note, "127.0.0.2", 0)
    try:
        yield f"http://127.0.0.2:{server.sockets[0].getsockname()[1]}", came
    finally:
        server.close()


PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "resource_metadata": lambda origin: {"resource_metadata": f"{origin}/latest/meta-data/iam"},
    "authorization_servers": lambda origin: {"servers": [f"{origin}/"]},
    "registration_endpoint": lambda origin: {"metadata": {"registration_endpoint": f"{origin}/register"}},
    "authorization_endpoint": lambda origin: {"metadata": {"authorization_endpoint": f"{origin}/authorize"}},
    "token_endpoint": lambda origin: {"metadata": {"token_endpoint": f"{origin}/token"}},
}


@pytest.mark.parametrize("place", PLACES)
async def test_a_server_cannot_have_a_login_go_to_an_internal_address(place: str, tmp_path: Path):
    async with other_machine() as (origin, came):
        with NamingServer(**PLACES[place](origin)) as server:
            account, person = ServerAccount("guarded", server.url, "me", tmp_path, port=41237), Onlooker()
            with pytest.raises(LoginFailed, match=r"127\.0\.0\.2 has the internal address.*security\.internal_hosts"):
                await login(account, person.show, person.receive)
            assert (came, TokenStore(account).read()) == ([], None)
            assert not any(address.startswith(origin) for address in person.opened)
            allowed = replace(account, internal_hosts=(origin.removeprefix("http://"),))
            if place == "authorization_endpoint":
                await login(allowed, person.show, person.receive)
                assert person.opened[0].startswith(f"{origin}/authorize")
            else:
                with pytest.raises((LoginFailed, AuthServerDown)):  # it is asked, and closes the connection
                    await login(allowed, person.show, person.receive)
                assert came


async def test_renewing_and_revoking_a_login_go_to_no_internal_address_either(tmp_path: Path):
    async with other_machine() as (origin, came):
        account = ServerAccount("guarded", "https://mcp.example/mcp", "me", tmp_path)
        record = TokenRecord("token", 0.0, expires_at=1.0, refresh_token="secret", token_endpoint=f"{origin}/token")
        record = replace(record, revocation_endpoint=f"{origin}/revoke")
        with pytest.raises(AuthServerDown, match="is not encrypted, but the server's is"):
            await asyncio.to_thread(refresh_record, account, record)
        plain = replace(account, url="http://mcp.example/mcp")
        with pytest.raises(AuthServerDown, match="has the internal address"):
            await asyncio.to_thread(refresh_record, plain, record)
        TokenStore(account).write(record)
        assert "nothing was sent" in await logout(account)
        assert came == []


@pytest.mark.parametrize("endpoint", ["authorization_endpoint", "token_endpoint", "registration_endpoint"])
async def test_an_endpoint_with_a_user_name_in_it_is_refused(endpoint: str, tmp_path: Path):
    with NamingServer() as server:
        host = server.origin.removeprefix("http://")
        server._named = {"metadata": {endpoint: f"http://accounts.google.example@{host}/x"}}
        person = Onlooker()
        with pytest.raises(LoginFailed, match="holds a user name or password"):
            await login(ServerAccount("s", server.url, "me", tmp_path, port=41237), person.show, person.receive)
        assert not any("google" in address for address in person.opened) and "/x" not in server.asked


@pytest.mark.parametrize("path", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"])
@pytest.mark.parametrize("announced", [None, [], ["plain"], ["S256"]])
async def test_an_authorization_server_that_does_not_announce_pkce_is_refused(
    path: str, announced: list[str] | None, tmp_path: Path
):
    with NamingServer(path, metadata={"code_challenge_methods_supported": announced}) as server:
        account, person = ServerAccount("s", server.url, "me", tmp_path, port=41237), Onlooker()
        if announced == ["S256"]:
            assert (await login(account, person.show, person.receive)).access_token == "token"
            return
        said = r"do not announce PKCE \(code_challenge_methods_supported with S256\)"
        with pytest.raises(LoginFailed, match=said) as refused:
            await login(account, person.show, person.receive)
        assert person.opened == [] and not {"/register", "/token"} & set(server.asked)
        assert ("servers.s.auth.pkce to assumed" in str(refused.value)) is (announced is None)
        knowing = replace(account, issuer=server.origin, pkce="assumed")
        if announced is None:
            assert (await login(knowing, person.show, person.receive)).access_token == "token"
            assert query_of(person.opened[0])["code_challenge_method"] == "S256"
        else:  # it says that it does not support it
            with pytest.raises(LoginFailed, match=said):
                await login(knowing, person.show, person.receive)


async def test_the_browser_comes_back_to_loopback_once_and_only_with_the_state_of_this_login(
    resource: LoopbackResourceServer, tmp_path: Path
):
    account = account_at(resource, tmp_path, port=free_port())
    user, statuses, walks = BrowserlessUser(), list[int](), list[asyncio.Future[None]]()

    async def walk(address: str) -> None:
        there = await user.redirected_to(address)
        state = query_of(there)["state"]
        guessed, second = (f"{account.redirect_uri}?code=x&state={given}" for given in ("wrong", state))
        async with httpx2.AsyncClient(trust_env=False) as client:
            for url in (guessed, there.replace("/callback", "/other"), there, second):
                statuses.append((await client.get(url)).status_code)

    async def show(address: str) -> None:
        walks.append(asyncio.ensure_future(walk(address)))

    async with LoopbackCallback(account, PATIENCE) as callback:
        record = await login(account, show, callback.receive)
        await walks[0]
    assert statuses == [400, 404, 200, 400]
    assert stored(account) == record


async def test_a_login_that_nobody_finishes_ends_at_its_deadline(resource: LoopbackResourceServer, tmp_path: Path):
    account = account_at(resource, tmp_path, port=free_port())

    async def nobody(address: str) -> None:
        pass

    async with LoopbackCallback(account, 0.05) as callback:
        with pytest.raises(LoginFailed, match="in time"):
            await login(account, nobody, callback.receive)


async def test_a_logout_revokes_both_tokens_and_forgets_the_record(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, tmp_path: Path
):
    account = account_at(resource, tmp_path)
    await logged_in(account)
    assert login_state(account).state == "logged in"
    assert await logout(account) == ""
    assert issuer.counts["/revoke"] == 2 and not any(token.active for token in issuer.book.tokens)
    assert login_state(account).state == "login needed" and TokenStore(account).read() is None


async def test_a_logout_forgets_the_record_also_where_it_cannot_be_revoked_and_says_so(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, tmp_path: Path
):
    account = account_at(resource, tmp_path)
    await logged_in(account)
    issuer.outages["/revoke"] = "503"
    assert "503" in await logout(account)
    assert TokenStore(account).read() is None


async def test_a_login_with_another_client_than_the_settings_name_is_not_used(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, tmp_path: Path
):
    await logged_in(account_at(resource, tmp_path))
    changed = account_at(resource, tmp_path, client_id="own")
    assert login_state(changed).state == "login needed"
    async with door_to(spec_of_account(changed)) as door:
        with pytest.raises(LoginNeeded):
            await door.call("echo", text="tea")
    assert not resource.tokens, "the server has seen none of the old tokens"


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "private_key_jwt"])
async def test_a_client_that_needs_no_person_gets_its_tokens_at_the_first_call_and_new_ones_when_they_end(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, tmp_path: Path, method: str
):
    key = ECKey.generate_key("P-256")
    issuer.add_client(
        "robot", secret="s3cret-s3cret", public_key=key, auth_method=method, grants=("client_credentials",)
    )
    settings: dict[str, Any] = {"grant": "client_credentials", "client_id": "robot", "issuer": issuer.origin}
    if method == "private_key_jwt":
        settings |= {"private_key": key.as_pem(private=True).decode(), "signing_algorithm": "ES256"}
    else:
        settings |= {"client_secret": "s3cret-s3cret"}
    account = account_at(resource, tmp_path, scopes=("read",), **settings)
    async with door_to(spec_of_account(account)) as door:
        assert await door.call("echo", text="one") == "one"
        issuer.book.forget_access()
        assert await door.call("echo", text="two") == "two"
    assert issuer.counts["logins"] == 0 and login_state(account).renews
