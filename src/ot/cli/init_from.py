"""onetool init --from: the servers of other clients, shown first and then written."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from ot.cli.terminal import confirm, echo

if TYPE_CHECKING:
    from ot.config.clients.found_server import FoundServer, Scope
    from ot.config.clients.take_over import Plan
    from ot.config.edit_config import Edited
    from ot.config.paths import Paths
    from ot.config.yaml_edit import YamlText


def take_over(names: Sequence[str], *, use_global: bool, yes: bool, as_json: bool) -> None:
    """Show what the clients called *names* have, ask, and write it."""
    from ot.config.paths import Paths

    paths = Paths.find()
    plan = _plan(_chosen(names), paths, use_global)
    if not as_json:
        echo("\n".join(_lines(plan)))
    if not plan.taken and not plan.rules and not plan.denied:
        _tell(plan, [], as_json)
        raise typer.Exit(0 if plan.servers else 3)
    if not yes and not _agreed():
        echo("Nothing was written.", err=True)
        raise typer.Exit(4)
    _tell(plan, _write(plan, paths), as_json)


def _chosen(names: Sequence[str]) -> list[str]:
    from ot.config.clients.take_over import CLIENTS
    from ot.errors import did_you_mean

    if "all" in names:
        return list(CLIENTS)
    for name in names:
        if name not in CLIENTS:
            guess = did_you_mean(name, list(CLIENTS))
            also = f", did you mean {guess}?" if guess else f": there are {', '.join(CLIENTS)} and all"
            raise typer.BadParameter(f"the client {name!r} is not known{also}")
    return list(dict.fromkeys(names))


def _plan(names: Sequence[str], paths: Paths, use_global: bool) -> Plan:
    from ot.config.clients.take_over import plan_of, surroundings
    from ot.config.edit_config import config_text, files_of, kept_secrets

    scopes: dict[Scope, bool] = {"user": True} if use_global else {"user": True, "project": False}
    known: list[str] = []
    kept: dict[Scope, Mapping[str, str]] = {}
    for scope, is_global in scopes.items():
        known += config_text(files_of(paths, use_global=is_global)).get("servers") or {}
        kept[scope] = kept_secrets(paths, use_global=is_global)
    return plan_of(names, surroundings(paths.cwd), known, kept)


def _write(plan: Plan, paths: Paths) -> list[Edited]:
    from ot.config.edit_config import edit_config

    edited: list[Edited] = []
    denied = [("deny", pattern) for pattern in plan.denied]
    # The project first: where that is refused, nothing is written at all.
    for scope, rules in (("project", denied), ("user", plan.rules)):
        servers = [server for server in plan.taken if server.place.scope == scope]
        if servers or rules:
            secrets = {name: value for server in servers for name, value in server.secrets.items()}
            brought = scope == "project" and (bool(rules) or any(server.place.repository for server in servers))

            def change(text: YamlText, servers: Sequence[FoundServer] = servers, rules: Any = rules) -> YamlText:
                return _changed(text, servers, rules)

            edit = edit_config(paths, change, use_global=scope == "user", secrets=secrets, from_repository=brought)
            edited.append(edit)
    return edited


def _changed(text: YamlText, servers: Sequence[FoundServer], rules: Any) -> YamlText:
    from ot.config.policy_edit import LISTS, with_pattern

    for server in servers:
        text = text.put(("servers", server.name), server.entry)
    for rule, pattern in rules:
        # What the user has said here already stays said.
        if not any(pattern in (text.get("policy", name) or ()) for name in LISTS):
            text = with_pattern(text, rule, pattern)
    return text


def _lines(plan: Plan) -> Iterator[str]:
    from ot.visible_text import printable

    for file in plan.files:
        yield f"read {printable(str(file))}"
    for problem in plan.problems:
        yield f"warning: {printable(problem)}"
    for server in plan.servers:
        yield from _server_lines(server)
    for rule, pattern in plan.rules:
        yield f"  policy {rule}: {printable(pattern)}"
    for pattern in plan.denied:
        yield f"  policy deny, in ./.onetool: {printable(pattern)}"
    if not plan.servers:
        yield "No servers were found."
    if any(server.place.repository for server in plan.taken):
        yield "What came with the repository stays untrusted until you run onetool trust."


def _server_lines(server: FoundServer) -> Iterator[str]:
    """Yield a server as ``onetool trust`` shows it, and what was done to it."""
    from ot.config.shown import server_words, shown

    name, client = shown(server.name), server.client
    if server.skipped:
        yield f"- {name}  from {client}  left out: {shown(server.skipped)}"
        return
    where = "~/.onetool" if server.place.scope == "user" else "./.onetool"
    yield f"+ {name}  from {client}{', in the repository' if server.place.repository else ''}  to {where}"
    yield from (f"    {shown(key)}: {shown(text)}" for key, text in server_words(server.entry).items())
    yield from (f"    note: {shown(note)}" for note in server.notes)


def _agreed() -> bool:
    if not sys.stdin.isatty():
        echo("Not asking without a terminal: add --yes to write it.", err=True)
        return False
    return confirm("Write this?")


def _tell(plan: Plan, edited: Sequence[Edited], as_json: bool) -> None:
    if as_json:
        echo(json.dumps(_as_json(plan, edited)))
        return
    for edit in edited:
        backup = f"; as it was: {edit.backup}" if edit.backup else ""
        echo(f"Wrote {edit.file}{backup}." if edit.changed else f"{edit.file} has all of it already.")
        if edit.secrets_file:
            echo(f"Secrets are in {edit.secrets_file}, which only you can read.")
        if edit.trusted is False:
            echo("The project is not trusted and is not used: look at it, then run onetool trust.")
    if edited:
        echo("Next: onetool check")


def _as_json(plan: Plan, edited: Sequence[Edited]) -> dict[str, Any]:
    servers = [
        {
            "name": server.name,
            "client": server.client,
            "file": str(server.place.file),
            "to": server.place.scope,
            "from_repository": server.place.repository,
            "entry": dict(server.entry),
            "notes": list(server.notes),
            "skipped": server.skipped,
        }
        for server in plan.servers
    ]
    return {
        "servers": servers,
        "policy": [{"rule": rule, "pattern": pattern} for rule, pattern in plan.rules],
        "project_policy": [{"rule": "deny", "pattern": pattern} for pattern in plan.denied],
        "problems": list(plan.problems),
        "written": [str(edit.file) for edit in edited],
        "trusted": {str(edit.file): edit.trusted for edit in edited if edit.trusted is not None},
    }
