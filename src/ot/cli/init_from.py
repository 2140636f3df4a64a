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
    if not plan.taken and not plan.rules:
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
    from ot.config.edit_config import config_directory, config_text, kept_secrets

    scopes: dict[Scope, bool] = {"user": True} if use_global else {"user": True, "project": False}
    known: list[str] = []
    kept: dict[Scope, Mapping[str, str]] = {}
    for scope, is_global in scopes.items():
        known += config_text(config_directory(paths, use_global=is_global)).get("servers") or {}
        kept[scope] = kept_secrets(paths, use_global=is_global)
    return plan_of(names, surroundings(paths.cwd), known, kept)


def _write(plan: Plan, paths: Paths) -> list[Edited]:
    from ot.config.edit_config import edit_config

    edited: list[Edited] = []
    for scope in ("user", "project"):
        servers = [server for server in plan.taken if server.place.scope == scope]
        rules = plan.rules if scope == "user" else ()
        if servers or rules:
            secrets = {name: value for server in servers for name, value in server.secrets.items()}

            def change(text: YamlText, servers: Sequence[FoundServer] = servers, rules: Any = rules) -> YamlText:
                return _changed(text, servers, rules)

            edited.append(edit_config(paths, change, use_global=scope == "user", secrets=secrets))
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
        yield printable(_line(server))
        yield from (f"    {printable(note)}" for note in server.notes if not server.skipped)
    for rule, pattern in plan.rules:
        yield f"  policy {rule}: {printable(pattern)}"
    if not plan.servers:
        yield "No servers were found."


def _line(server: FoundServer) -> str:
    kind = "http" if server.entry.get("url") else "stdio"
    line = server.entry.get("url") or " ".join([str(server.entry.get("command", "")), *server.entry.get("args", ())])
    if server.skipped:
        return f"- {server.name}  from {server.client}  left out: {server.skipped}"
    where = "~/.onetool" if server.place.scope == "user" else "./.onetool"
    return f"+ {server.name}  from {server.client}  to {where}  {kind}  {line}"


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
            "notes": list(server.notes),
            "skipped": server.skipped,
        }
        for server in plan.servers
    ]
    return {
        "servers": servers,
        "policy": [{"rule": rule, "pattern": pattern} for rule, pattern in plan.rules],
        "problems": list(plan.problems),
        "written": [str(edit.file) for edit in edited],
    }
