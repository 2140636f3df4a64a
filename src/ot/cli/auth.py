"""onetool auth login, status and logout: the logins at MCP servers."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ot.cli.exit_codes import DENIED, FAILURE, NOT_FOUND, OK
from ot.cli.terminal import columns, echo, echo_either, fail
from ot.cli.terminal.completion import complete_servers
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.config.load import Loaded
    from ot.config.paths import Paths
    from ot.proxied.auth.account import ServerAccount
    from ot.proxied.auth.browser_return import CallbackAnswer
    from ot.proxied.auth.login_state import LoginState
    from ot.proxied.auth.token_record import TokenRecord

SECONDS = 300.0
"""How long a person has for a login."""
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")

ServerArgument = Annotated[
    str, typer.Argument(metavar="SERVER", help="The server's name.", autocompletion=complete_servers)
]


def login(
    server: ServerArgument,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and take the one that a browser ends at.")
    ] = False,
    scope: Annotated[str, typer.Option(help="Ask for these scopes in addition, divided by spaces.")] = "",
    as_json: AsJson = False,
) -> None:
    """Log in at an MCP server that wants OAuth; its tokens are kept and renewed from then on."""
    from ot.cli.terminal.event_loop import run_async

    account = _account(server, may_set=True)
    if account.grant == "client_credentials":
        told = {"server": server, "state": "logged in", "why": "its client needs no person"}
        echo_either(as_json, told, [f"{server} needs no login: its client obtains tokens by itself."])
        return
    if not sys.stdin.isatty():
        fail(f"a login needs a person at a terminal: run 'onetool auth login {server}' in one", DENIED)
    record = run_async(_log_in_by_paste(account, scope) if no_browser else _by_browser(account, scope))
    told = {"server": server, "state": "logged in", "scope": record.scope, "expires_at": record.expires_at}
    echo_either(as_json, told, [f"Logged in at {server}.", f"Next: onetool run 'ot.help(\"{server}\")'"])


def status(
    server: Annotated[
        str, typer.Argument(metavar="[SERVER]", help="One server only.", autocompletion=complete_servers)
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show the logins at MCP servers, and when their tokens expire; nothing is asked or renewed."""
    from ot.proxied.auth.login_state import login_states

    accounts = {server: _account(server)} if server else _accounts(*_load())
    states = login_states(accounts)
    rows = [{"server": name, **asdict(state)} for name, state in states.items()]
    echo_either(as_json, rows, _status_lines(states))
    if not rows and not as_json:
        echo("No server has a login. Next: onetool auth login SERVER", err=True)
    raise typer.Exit(DENIED if server and rows[0]["state"] != "logged in" else OK)


def logout(server: ServerArgument, as_json: AsJson = False) -> None:
    """Revoke the tokens of a login, and forget it."""
    from ot.cli.terminal.event_loop import run_async
    from ot.errors import LoginNeeded
    from ot.proxied.auth.logout import logout as end_login

    account = _account(server)
    try:
        why = run_async(end_login(account))
    except LoginNeeded as error:
        fail(f"{server}: {error.why}", NOT_FOUND)
    told = {"server": server, "forgotten": True, "revoked": not why, "why": why}
    revoked = "its tokens are revoked" if not why else f"but its tokens could not be revoked: {why}"
    echo_either(as_json, told, [f"Logged out of {server}; {revoked}."])


# ---------------------------------------------------------------- logging in


async def _by_browser(account: ServerAccount, scope: str) -> TokenRecord:
    from ot.proxied.auth.login import login as drive_login
    from ot.proxied.auth.loopback import LoopbackCallback

    async def show(address: str) -> None:
        _tell("Open this address in a browser on this machine to log in:", address)
        if sys.platform in ("darwin", "win32") or any(map(os.environ.get, DISPLAYS)):
            await asyncio.to_thread(typer.launch, address)

    async with AsyncExitStack() as stack:
        try:
            callback = await stack.enter_async_context(LoopbackCallback(account, SECONDS))
        except OSError:
            other = f"set servers.{account.server}.auth.port to a free port, or use --no-browser"
            fail(f"the port {account.port}, where the browser comes back to, is in use: {other}")
        return await drive_login(account, show, callback.receive, scope=scope)


async def _log_in_by_paste(account: ServerAccount, scope: str) -> TokenRecord:
    from ot.proxied.auth.browser_return import CallbackAnswer
    from ot.proxied.auth.login import login as drive_login

    async def show(address: str) -> None:
        _tell("Open this address in a browser anywhere:", address)

    async def receive(state: str) -> CallbackAnswer:
        _tell(f"The browser ends at an address below {account.redirect_uri}, which it may not reach: paste it here.")
        line = await asyncio.wait_for(asyncio.to_thread(sys.stdin.readline), SECONDS)
        return CallbackAnswer.from_address(line)

    return await drive_login(account, show, receive, scope=scope)


def _tell(*lines: str) -> None:
    for line in lines:
        echo(line, err=True)


# ---------------------------------------------------------------- which login


def _load() -> tuple[Loaded, Paths]:
    from ot.config.load import load_config
    from ot.config.paths import Paths

    paths = Paths.find()
    return load_config(paths), paths


def _accounts(loaded: Loaded, paths: Paths) -> dict[str, ServerAccount]:
    from ot.proxied.spec import resolve_specs

    specs = resolve_specs(loaded, paths)
    return {name: spec.account for name, spec in specs.items() if spec.account}


def _account(name: str, *, may_set: bool = False) -> ServerAccount:
    """Return the login of the server *name*; with *may_set* the settings are told that it has one."""
    from ot.nearest_names import listing
    from ot.proxied.spec import resolve_specs

    loaded, paths = _load()
    specs = resolve_specs(loaded, paths)
    if name not in specs:
        known = f" Servers: {listing(name, list(specs))}" if specs else ""
        fail(f"there is no server '{name}' in use.{known}", NOT_FOUND)
    spec = specs[name]
    if spec.problem:
        fail(spec.problem)
    if spec.account is None and may_set:
        return _with_auth_set(name, paths, is_remote=bool(spec.url))
    if spec.account is None:
        fail(f"'{name}' has no login: its settings do not say 'auth: oauth'", NOT_FOUND)
    return spec.account


def _with_auth_set(name: str, paths: Paths, *, is_remote: bool) -> ServerAccount:
    from ot.cli.servers import put_into_config

    if not is_remote:
        fail(f"'{name}' is a program on this machine: give it its credentials in servers.{name}.env", FAILURE)
    edited = put_into_config(paths, name, "auth", "oauth")
    _tell(f"Set 'auth: oauth' for {name} in {edited.file}.")
    found = _accounts(*_load()).get(name)
    if found is None:
        fail("the project is not trusted any more, since it has changed: run onetool trust, then log in", DENIED)
    return found


# ---------------------------------------------------------------- what is shown


def _status_lines(states: dict[str, LoginState]) -> list[str]:
    rows = [(name, found.state, found.until, found.scope, found.why) for name, found in states.items()]
    return columns(rows) if rows else []
