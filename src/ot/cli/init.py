"""onetool init: a configuration to start from, or the servers of other clients; config schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.connecting.client_names import choose_clients, complete_clients
from ot.cli.exit_codes import DENIED, NOT_FOUND, OK
from ot.cli.terminal import NOT_TRUSTED, confirm, echo, echo_either, echo_json
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.cli.connecting.connect_flow import ConnectFlow
    from ot.config.clients.server_entry import FoundServer, Scope
    from ot.config.clients.take_over import Plan
    from ot.config.edit_config import Edited
    from ot.config.paths import Paths
    from ot.config.yaml_edit import YamlText


def init(
    use_global: Annotated[bool, typer.Option("--global", help="Write ~/.onetool/ instead of ./.onetool/.")] = False,
    from_clients: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="CLIENT",
            help="Take over the servers of another client, or of all.",
            autocompletion=complete_clients,
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="SERVER=NAME", help="What a server that --from finds is called here."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before writing what --from found.")] = False,
    connect: Annotated[
        bool | None,
        typer.Option(
            "--connect/--no-connect",
            help="After --from, connect the client and take out of it what starts here, or start nothing at all.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a short .onetool/onetool.yaml, and trust what was written.

    With --from, servers of other clients are added: those of a client's own file to ~/.onetool/, those of a
    repository's file to the project's, which that does not trust. CLIENT is claude-code, claude-desktop, cursor,
    vscode, codex, windsurf, zed, gemini-cli or all. Each is started once and its tools are listed; a server that does
    not start here stays in its client. One that would hide a pack or a module of Python gets another name.
    """
    if from_clients:
        chosen = dict(map(_parse_name, names or ()))
        _take_over(from_clients, chosen, use_global=use_global, yes=yes, connect=connect, as_json=as_json)
    elif names:
        raise typer.BadParameter("--name is for servers that --from finds")
    else:
        _write_new(use_global, as_json)


def _write_new(use_global: bool, as_json: bool) -> None:
    from ot.config.inventory import take_inventory
    from ot.config.new_directory import HEAD, write_new_directory
    from ot.config.paths import CONFIG_FILE, FOLDER, Paths
    from ot.config.trust import Trust
    from ot.errors import ConfigError

    paths = Paths.find()
    directory = paths.global_dir if use_global else paths.cwd / FOLDER
    if paths.ignored and not use_global:
        raise ConfigError(f"nothing was written: {paths.ignored}")
    if (directory / CONFIG_FILE).exists():
        raise ConfigError(f"{directory / CONFIG_FILE} exists already and was left as it is")
    foreign = not use_global and directory.exists() and any(directory.iterdir())
    write_new_directory(directory, HEAD)
    # Files that this command did not write stay unused until the user has looked at them.
    trusted = not use_global and not foreign and directory != paths.global_dir
    if trusted:
        Trust(paths.global_dir).trust(take_inventory(directory))
    lines = [
        f"Wrote {directory / CONFIG_FILE}.",
        *(["Other files were there before: look at them, then run onetool trust."] if foreign else []),
        "Next: onetool check",
    ]
    echo_either(as_json, {"directory": str(directory), "trusted": trusted}, lines)


# ---------------------------------------------------------------- --from: shown first, then written


def _parse_name(text: str) -> tuple[str, str]:
    from ot.config.clients.server_entry import own_name

    old, _, new = text.rpartition("=")
    if not old or own_name(new) != new:
        raise typer.BadParameter(f"--name {text}: write SERVER=NAME, with a NAME that a program can write")
    return old, new


def _take_over(
    clients: Sequence[str],
    chosen: Mapping[str, str],
    *,
    use_global: bool,
    yes: bool,
    connect: bool | None,
    as_json: bool,
) -> None:
    """Show what these clients have, ask, write it, and start it; then connect those that can do without it."""
    from ot.cli.connecting.connect_flow import ConnectFlow, HowToWrite
    from ot.config.paths import Paths

    paths = Paths.find()
    plan = _plan(choose_clients(clients), paths, chosen, use_global)
    if unknown := chosen.keys() - {server.original for server in plan.servers}:
        raise typer.BadParameter(f"--name: no server called {', '.join(sorted(unknown))} was found")
    if not as_json:
        echo("\n".join(_lines(plan)))
    if not plan.taken and not plan.rules and not plan.denied:
        echo_either(as_json, _as_json(plan, []), ())
        raise typer.Exit(OK if plan.servers else NOT_FOUND)
    if not (yes or confirm("Write this?", "write")):
        echo("Nothing was written.", err=True)
        raise typer.Exit(DENIED)
    edited = _write(plan, paths)
    own = [server for server in plan.taken if server.place.scope == "user"]
    owners = list(dict.fromkeys(server.client for server in own))
    if not as_json:
        for line in _describe_writes(edited):
            echo(line)
    flow = ConnectFlow(paths, HowToWrite(yes=yes, as_json=as_json))
    used = [server for server in own if server.entry.get("enabled") is not False] if connect is not False else []
    started = flow.start({(server.client, server.original): server.name for server in used})
    told = _connect_clients(flow, owners, connect) if owners else []
    if as_json:
        echo_json({**_as_json(plan, edited), "started": started, "connected": told})
    elif not told:
        more = f", then onetool connect {' '.join(owners)} --take-out" if owners else ""
        echo(f"Next: onetool check{more}")


def _connect_clients(flow: ConnectFlow, clients: Sequence[str], connect: bool | None) -> list[dict[str, Any]]:
    """Connect the clients whose servers OneTool has now, and take those out of them that start, if that is wanted."""
    from ot.cli.connecting.client_screen import show_costs
    from ot.config.clients.connection import EntryWanted
    from ot.config.clients.launcher import this_launch_command

    if connect is None and flow.how.asks:
        question = f"Connect {', '.join(clients)} to OneTool, and take the servers that start here out of there?"
        connect = confirm(question, "connect")
    if not connect:
        return []
    told = flow.connect(clients, EntryWanted(this_launch_command(shared=True)), take_out=True)
    if not flow.how.as_json:
        show_costs(told)
    return told


def _plan(names: Sequence[str], paths: Paths, chosen: Mapping[str, str], use_global: bool) -> Plan:
    from ot.build import names_in_use
    from ot.config.clients.take_over import Configured, ServerNames, plan_of, surroundings
    from ot.config.edit_config import POLICY_LISTS, config_text, files_of, read_kept_secrets

    scopes: dict[Scope, bool] = {"user": True} if use_global else {"user": True, "project": False}
    here: dict[Scope, Configured] = {}
    for scope, is_global in scopes.items():
        text = config_text(files_of(paths, use_global=is_global))
        patterns = frozenset(pattern for rule in POLICY_LISTS for pattern in text.get("policy", rule) or ())
        secrets = read_kept_secrets(paths, use_global=is_global)
        here[scope] = Configured(text.get("servers") or {}, secrets, patterns)
    return plan_of(names, surroundings(paths.cwd), here, ServerNames(names_in_use(paths.global_dir), chosen))


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

            change = partial(_add_servers, servers=servers, rules=rules)
            edit = edit_config(paths, change, use_global=scope == "user", secrets=secrets, from_repository=brought)
            edited.append(edit)
    return edited


def _add_servers(text: YamlText, servers: Sequence[FoundServer], rules: Any) -> YamlText:
    from ot.config.edit_config import with_pattern

    for server in servers:
        text = text.put(("servers", server.name), server.entry)
    for rule, pattern in rules:
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
    from ot.config.inventory import flatten, server_words

    name, client = flatten(server.name), server.client
    if server.skipped:
        yield f"- {name}  from {client}  left out: {flatten(server.skipped)}"
        return
    where = "~/.onetool" if server.place.scope == "user" else "./.onetool"
    whose = ", in the repository" if server.place.repository else ", for this directory" if server.place.only_in else ""
    yield f"+ {name}  from {client}{whose}  to {where}"
    yield from (f"    {flatten(key)}: {flatten(text)}" for key, text in server_words(server.entry).items())
    yield from (f"    note: {flatten(note)}" for note in server.notes)


def _describe_writes(edited: Sequence[Edited]) -> Iterator[str]:
    for edit in edited:
        backup = f"; as it was: {edit.backup}" if edit.backup else ""
        yield f"Wrote {edit.file}{backup}." if edit.changed else f"{edit.file} has all of it already."
        if edit.secrets_file:
            yield f"Secrets are in {edit.secrets_file}, which only you can read."
        if edit.trusted is False:
            yield NOT_TRUSTED


def _as_json(plan: Plan, edited: Sequence[Edited]) -> dict[str, Any]:
    servers = [
        {
            "name": server.held_as or server.name,
            "in_client": server.original,
            "client": server.client,
            "file": str(server.place.file),
            "to": server.place.scope,
            "only_in": server.place.only_in or None,
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


def schema(as_json: Annotated[bool, typer.Option("--json", help="Print it on one line.")] = False) -> None:
    """Print the JSON schema of onetool.yaml, for editors."""
    from ot.config.new_directory import json_schema

    echo(json.dumps(json_schema(), indent=None if as_json else 2))
