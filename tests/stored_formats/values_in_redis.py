"""Samples of what replicas keep for each other in the shared state, each value under its key."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from onetool_team.logins.pending_logins import PendingLogins
from onetool_team.logins.shared_token_store import SharedTokenStore, StateRecords
from onetool_team.state.always_allowed import AlwaysAllowed
from onetool_team.state.memory_state import MemoryState, _Mailbox
from onetool_team.state.presence import Presence
from onetool_team.state.replica_mail import ReplicaMail, TellNews
from onetool_team.state.revisions import Revisions
from onetool_team.state.session_replicas import SessionReplicas
from onetool_team.state.state_keys import StateKeys
from ot.proxied.auth.browser_return import CallbackAnswer
from stored_formats.files_of_servers import LOGIN, account_in
from stored_formats.stored_format import StoredFormat

KEYS = StateKeys(["a sample's key that seals nothing of anybody's"])
FILE = "state.json"
OTHER = "0123456789abcdef"
"""The replica that the letters go to."""


def _save(state: MemoryState, directory: Path) -> None:
    """Write all values and mailboxes of *state* as text."""
    values = {key: base64.b64encode(value.data).decode() for key, value in state._values.items()}
    boxes = {
        name: [base64.b64encode(message).decode() for message in box.messages] for name, box in state._mailboxes.items()
    }
    (directory / FILE).write_text(json.dumps({"values": values, "mailboxes": boxes}, indent=1) + "\n")


async def _loaded(directory: Path) -> MemoryState:
    found: dict[str, Any] = json.loads((directory / FILE).read_text())
    state = MemoryState()
    for key, value in found["values"].items():
        await state.set(key, base64.b64decode(value))
    for name, messages in found["mailboxes"].items():
        box = state._mailboxes[name] = _Mailbox()
        box.messages.extend(base64.b64decode(message) for message in messages)
    return state


def _address(number: int) -> str:
    return f"https://issuer.example/authorize?state=state-{number}&client_id=client-1"


async def _presence(state: MemoryState) -> Presence:
    presence = Presence(state)
    presence.me = OTHER
    await presence._announce()
    return presence


async def _begin_logins(state: MemoryState) -> dict[str, str]:
    """Leave one login that waits, one whose browser has left and one that is over; return what their people hold."""
    logins = PendingLogins(state, KEYS)
    waiting, code = await logins.begin("docs", "ada", _address(1))
    given = {"link": waiting, "code": code}
    for number in (2, 3):
        link, typed = await logins.begin("docs", "ada", _address(number))
        left = await logins.leave(link, typed)
        assert isinstance(left, tuple)
        given[f"cookie {number}"] = left[1]
    assert await logins.come_back(CallbackAnswer("state-3", "code-3", "https://issuer.example"), given["cookie 3"])
    await logins.end("no-link", "state-3", "the code was refused")
    return given


async def _filled() -> tuple[MemoryState, dict[str, str]]:
    state = MemoryState()
    await AlwaysAllowed(state, KEYS).add("ada", "github.get_*")
    await asyncio.to_thread(_tokens(state).write, LOGIN)
    presence = await _presence(state)
    await SessionReplicas(state, KEYS, presence).owner("ada/1", "notes", 60.0)
    await Revisions(state, ["logins"]).advance("logins")
    letter = {"id": "4" * 32, "from": "fedcba9876543210", "kind": "ask", "what": "run", "body": {"command": "1 + 1"}}
    await ReplicaMail(state, KEYS, presence, _nothing)._post(OTHER, letter)
    return state, await _begin_logins(state)


def _tokens(state: MemoryState) -> SharedTokenStore:
    return SharedTokenStore(account_in(Path()), StateRecords(state, KEYS), asyncio.get_running_loop())


async def _nothing(_what: str, _body: Mapping[str, Any], _tell: TellNews) -> Mapping[str, Any]:
    return {}


def _make(directory: Path) -> None:
    state, given = asyncio.run(_filled())
    _save(state, directory)
    (directory / "given.json").write_text(json.dumps(given, indent=1) + "\n")


# ---------------------------------------------------------------- reading


async def _read_letter(state: MemoryState, presence: Presence) -> Any:
    heard: list[Any] = []

    async def handle(what: str, body: Mapping[str, Any], _tell: TellNews) -> Mapping[str, Any]:
        heard.extend([what, dict(body)])
        return {}

    mail = ReplicaMail(state, KEYS, presence, handle)
    sealed = await state.receive(OTHER, 0.0)
    assert sealed is not None
    mail._sort(sealed)
    await asyncio.gather(*mail._handling.values())
    return heard


async def _read_logins(state: MemoryState, given: Mapping[str, str]) -> Any:
    logins = PendingLogins(state, KEYS)
    left = await logins.leave(given["link"], given["code"])
    back = await logins.come_back(CallbackAnswer("state-2", "code-2"), given["cookie 2"])
    return {
        "waiting": left[0].server if isinstance(left, tuple) else None,
        "left": back and [back.principal, back.address],
        "answered": asdict(await logins.answer("state-3", 0.0)),
        "outcome": await logins.outcome("state-3"),
    }


async def _read_all(directory: Path) -> Any:
    state, presence = await _loaded(directory), Presence(MemoryState())
    presence.me = OTHER
    tokens, revisions = await asyncio.to_thread(_tokens(state).read), Revisions(state, ["logins"])
    await revisions.look()
    return {
        "always": list(await AlwaysAllowed(state, KEYS).patterns("ada")),
        "login": tokens and tokens.to_json(),
        "owner": await SessionReplicas(state, KEYS, Presence(state)).owner("ada/1", "notes", 60.0),
        "alive": await Presence(state).is_alive(OTHER),
        "revision": revisions.number("logins"),
        "letter": await _read_letter(state, presence),
        "logins": await _read_logins(state, json.loads((directory / "given.json").read_text())),
    }


FORMATS = (
    StoredFormat(
        "shared_state",
        _make,
        lambda directory: asyncio.run(_read_all(directory)),
        {
            "always": ["github.get_*"],
            "login": LOGIN.to_json(),
            "owner": OTHER,
            "alive": True,
            "revision": 1,
            "letter": ["run", {"command": "1 + 1"}],
            "logins": {
                "waiting": "docs",
                "left": ["ada", _address(2)],
                "answered": {"state": "state-3", "code": "code-3", "iss": "https://issuer.example", "error": ""},
                "outcome": "the code was refused",
            },
        },
    ),
)
