"""Samples of what lies in a user's directory: settings, secrets, trust, conversations."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from mcp_guide.document import compose, read_document
from mcp_guide.folder import Folder
from onetool_chat.cli.chat_commands import dump_conversation, history_in
from onetool_chat.conversation import Conversation
from onetool_team.auth.static_tokens import StaticTokens, token_hash
from onetool_team.auth.token_file import read_token_file, write_token
from onetool_team.http.loopback_token import LoopbackToken
from onetool_team.settings import Http
from onetool_team.state.memory_state import MemoryState
from onetool_team.state.shared_home import SharedHome
from ot.config.clients.connection_notes import ConnectionNotes, Note
from ot.config.edit_config import edit_config
from ot.config.load import load_config
from ot.config.paths import SECRETS_FILE, Paths
from ot.config.secrets import read_secrets
from ot.config.trust import Record, SeenText, ServerHere, Trust, TrustedWorkspace
from ot.config.yaml_edit import YamlText
from ot.files.private_file import write_private
from stored_formats.frozen_world import NOW
from stored_formats.stored_format import StoredFormat

PROJECT = "/srv/shop/.onetool"
"""A directory that is on no machine that runs this."""
CONFIG_TEXT = "version: 1\n"
TOKEN = "ott_sample-of-a-token-that-opens-nothing-00000"
SETTINGS: dict[str, Any] = {
    "aliases": {"issue": "github.get_issue"},
    "snippets": {"todos": {"body": "file.search(pattern='TODO', path={{ path | tojson }})", "params": {"path": {}}}},
    "servers": {
        "github": {"command": "github-mcp", "args": ["--stdio"], "env": {"TOKEN": "${GITHUB_TOKEN}"}},
        "docs": {"url": "https://docs.example/mcp", "enabled": False},
    },
    "policy": {"allow": ["github.get_*"], "deny": ["github.delete_*"]},
    "output": {"result_ttl": 7200},
    "http": {"tokens": {"ada": {"hash": token_hash(TOKEN), "scopes": ["admin"], "groups": ["ops"]}}},
}


# ---------------------------------------------------------------- configuration and secrets


def _paths(directory: Path) -> Paths:
    return Paths(directory / "elsewhere", None, directory, environ={})


def _make_configuration(directory: Path) -> None:
    def change(text: YamlText) -> YamlText:
        text = YamlText(CONFIG_TEXT, text.file)
        for name, value in SETTINGS.items():
            text = text.put((name,), value)
        return text

    edit_config(_paths(directory), change, use_global=True, secrets={"GITHUB_TOKEN": "a-sample-0001"})
    _keep_only(directory, "onetool.yaml")


def _keep_only(directory: Path, name: str) -> None:
    """Remove what was written beside the file *name*: editors and version control read that."""
    for file in directory.iterdir():
        if file.name != name:
            file.unlink()


def _read_configuration(directory: Path) -> Any:
    found = load_config(_paths(directory), Trust(directory)).config
    tokens = found.section(Http).tokens
    github = found.servers["github"]
    return {
        "version": found.version,
        "aliases": dict(found.aliases),
        "snippets": sorted(found.snippets),
        "github": [github.command, list(github.args), dict(github.env)],
        "docs": [found.servers["docs"].url, found.servers["docs"].enabled],
        "policy": [list(found.policy.allow), list(found.policy.deny)],
        "result_ttl": found.output.result_ttl,
        "tokens": {name: [list(entry.scopes), list(entry.groups)] for name, entry in tokens.items()},
        "known by": token_owner(StaticTokens(tokens)),
    }


def token_owner(tokens: StaticTokens) -> str:
    """Return whose the sample's token is; nothing is waited for, so it ends at once."""
    try:
        tokens.identify(TOKEN).send(None)
    except StopIteration as answer:
        return str(answer.value.principal)
    raise AssertionError


def _make_secrets(directory: Path) -> None:
    given = {"GITHUB_TOKEN": "a-sample-0001", "DIGITS": "0012", "QUOTED": 'a "b" # c'}
    edit_config(_paths(directory), lambda text: YamlText(CONFIG_TEXT, text.file), use_global=True, secrets=given)
    _keep_only(directory, SECRETS_FILE)


TOKENS_FILE = "tokens.txt"


def _make_tokens(directory: Path) -> None:
    file, hash = directory / TOKENS_FILE, token_hash(TOKEN)
    write_token(file, "ada", {"hash": hash, "scopes": ["run", "admin"], "groups": ["ops", "night"]}, replace=False)
    write_token(file, "bob", {"hash": token_hash(f"{TOKEN}1")}, replace=False)


def _read_tokens(directory: Path) -> Any:
    found = read_token_file(directory / TOKENS_FILE)
    tokens = {name: [list(entry.scopes), list(entry.groups)] for name, entry in found.items()}
    return {"tokens": tokens, "known by": token_owner(StaticTokens(found))}


# ---------------------------------------------------------------- trust


def _make_trust(directory: Path) -> None:
    trust = Trust(directory, clock=lambda: NOW)
    digest = hashlib.sha256(CONFIG_TEXT.encode()).hexdigest()
    record = Record(time=trust._now(), files={"onetool.yaml": digest})
    server = ServerHere(written="0" * 64, files={"package.json": "1" * 64})
    workspace = TrustedWorkspace(time=trust._now(), servers={"github": server})
    book = trust._read()[0]
    trust._write(book.model_copy(update={"projects": {PROJECT: record}, "workspaces": {"/srv/shop": workspace}}))
    SeenText(directory).keep(PROJECT, {"onetool.yaml": CONFIG_TEXT.encode()}, without=SECRETS_FILE)


def _read_trust(directory: Path) -> Any:
    trust = Trust(directory)
    before = trust.before(Path(PROJECT))
    assert before is not None
    return {
        "projects": {str(path): [record.time, dict(record.files)] for path, record in trust.list().items()},
        "servers": {name: here.model_dump() for name, here in trust.servers_in(Path("/srv/shop")).items()},
        "seen": {name: data.decode() for name, data in before.snapshot.contents.items()},
    }


# ---------------------------------------------------------------- notes about clients, conversations, the token, guides

NOTE = Note("onetool", left="2" * 64, backup="/srv/copies/cursor.json", made_list=True, taken_out={"github": "/a"})


def _make_connections(directory: Path) -> None:
    ConnectionNotes(_paths(directory)).keep(Path("/srv/cursor/mcp.json"), NOTE, None)


def _read_connections(directory: Path) -> Any:
    found = ConnectionNotes(_paths(directory)).of(Path("/srv/cursor/mcp.json"))
    return asdict(found) if found else None


HISTORY = [
    {"role": "user", "content": "What is open?"},
    {"role": "assistant", "content": [{"type": "text", "text": "Two issues."}]},
]


def _make_conversation(directory: Path) -> None:
    held = SimpleNamespace(client=SimpleNamespace(model="claude-sonnet-4-5"), history=HISTORY)
    write_private(directory / "2026-01-01-120000.json", dump_conversation(cast("Conversation", held), "anthropic"))


def _read_conversation(directory: Path) -> Any:
    return history_in((directory / "2026-01-01-120000.json").read_text(), "anthropic")


def _make_guide(directory: Path) -> None:
    text = compose("Releases", "How to release", ["release", "ci"], "# Releases\n\nTag it.\n")
    Folder(directory, "project").put("how-to", "release", text, replace=False)


def _read_guide(directory: Path) -> Any:
    text = (directory / "how-to" / "release.md").read_text()
    return dict(read_document("how-to", "release", "project", text))


def _make_home_mark(directory: Path) -> None:
    SharedHome(MemoryState(), directory)


FORMATS = (
    StoredFormat(
        "configuration",
        _make_configuration,
        _read_configuration,
        {
            "version": 1,
            "aliases": {"issue": "github.get_issue"},
            "snippets": ["todos"],
            "github": ["github-mcp", ["--stdio"], {"TOKEN": "${GITHUB_TOKEN}"}],
            "docs": ["https://docs.example/mcp", False],
            "policy": [["github.get_*"], ["github.delete_*"]],
            "result_ttl": 7200,
            "tokens": {"ada": [["admin"], ["ops"]]},
            "known by": "token|ada",
        },
    ),
    StoredFormat(
        "secrets",
        _make_secrets,
        lambda directory: dict(read_secrets(directory / SECRETS_FILE)[0]),
        {"GITHUB_TOKEN": "a-sample-0001", "DIGITS": "0012", "QUOTED": 'a "b" # c'},
    ),
    StoredFormat(
        "tokens",
        _make_tokens,
        _read_tokens,
        {
            "tokens": {"ada": [["run", "admin"], ["ops", "night"]], "bob": [["run"], []]},
            "known by": "token|ada",
        },
    ),
    StoredFormat(
        "trust",
        _make_trust,
        _read_trust,
        {
            "projects": {
                PROJECT: ["2026-01-01T12:00:00+00:00", {"onetool.yaml": hashlib.sha256(b"version: 1\n").hexdigest()}]
            },
            "servers": {"github": {"written": "0" * 64, "files": {"package.json": "1" * 64}}},
            "seen": {"onetool.yaml": CONFIG_TEXT},
        },
    ),
    StoredFormat("connections", _make_connections, _read_connections, asdict(NOTE)),
    StoredFormat("conversation", _make_conversation, _read_conversation, HISTORY),
    StoredFormat(
        "http_token",
        lambda directory: LoopbackToken.of(directory) and None,
        lambda directory: LoopbackToken.of(directory).token,
        "otl_76DcNVa-1oYqkaDZzF0__GNOeSbSh0Wpgv_nYaMOjW8",
    ),
    StoredFormat(
        "home_mark",
        _make_home_mark,
        lambda directory: SharedHome(MemoryState(), directory).mark.decode(),
        "efa0dc3556bed6862a91a0d9cc5d3ffc",
    ),
    StoredFormat(
        "guide",
        _make_guide,
        _read_guide,
        {
            "category": "how-to",
            "name": "release",
            "title": "Releases",
            "description": "How to release",
            "tags": ["release", "ci"],
            "source": "project",
            "text": "# Releases\n\nTag it.\n",
        },
    ),
)
