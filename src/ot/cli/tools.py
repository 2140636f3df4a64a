"""onetool list and search: the tools that programs can call, looked up without calling one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import BACKEND, DENIED, NOT_FOUND, OK
from ot.cli.terminal import columns, pluralize
from ot.cli.terminal.command_answer import CommandAnswer, CommandFailed, answer_as_data
from ot.cli.terminal.completion import complete_packs
from ot.cli.terminal.options import AsJson
from ot.cli.terminal.printed_answers import print_answer

if TYPE_CHECKING:
    from ot.config.paths import Paths
    from ot.proxied.auth.login_state import LoginState
    from ot.registry.tool import Tool
    from ot.registry.tool_registry import Pack
    from ot.workspace import Workspace

CHARACTERS_PER_TOKEN = 4


def list_(
    pack: Annotated[
        str,
        typer.Argument(
            metavar="PACK",
            help="List the tools of this pack; without it, the packs.",
            autocompletion=complete_packs,
        ),
    ] = "",
    tokens: Annotated[bool, typer.Option("--tokens", help="Show what each would take in a model's context.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the packs, or the tools of one, without starting any server.

    --tokens estimates what the definitions would take if they were listed one by one, at four characters a token.
    """
    from ot.cli.terminal.own_workspace import workspace_at_rest

    with workspace_at_rest() as app:
        answer = answer_as_data(lambda: list_tools(app, pack, tokens=tokens))
    raise typer.Exit(print_answer(answer, as_json=as_json))


def list_tools(app: Workspace, pack: str = "", *, tokens: bool = False) -> CommandAnswer:
    """Return the packs, or the tools of one.

    Raises:
        CommandFailed: What the pack offers is not known, or it cannot be used.
        UnknownPack: There is no such pack.
    """
    rows = _tool_rows(app, pack) if pack else _pack_rows(app)
    if not tokens:
        rows = [{key: value for key, value in row.items() if key != "tokens"} for row in rows]
    total = sum(row["tokens"] or 0 for row in rows) if tokens else 0
    note = f"Listed one by one, they would take about {total:,} tokens of every request (estimate)."
    lines = _tool_lines(rows) if pack else list(_pack_lines(rows))
    return CommandAnswer(rows, lines, _warnings(app), [note] if tokens else [])


def _warnings(app: Workspace) -> list[str]:
    """Return what is left out, such as an untrusted project's packs, or packs that servers replace."""
    return [f"warning: {warning}" for warning in (*app.picture.loaded.warnings, *app.picture.hidden_packs())]


def _packs(app: Workspace) -> list[Pack]:
    packs = app.picture.registry.packs
    return [packs[name] for name in sorted(packs)]


def _pack_rows(app: Workspace) -> list[dict[str, Any]]:
    logins = _logins(app)
    return [_pack_row(one, app.paths, logins.get(one.name)) for one in _packs(app)]


def _logins(app: Workspace) -> dict[str, LoginState]:
    """Return the states of logins at servers, by pack."""
    from ot.proxied.auth.login_state import login_states

    return login_states({spec.pack: spec.account for spec in app.picture.servers.values()})


def _pack_row(pack: Pack, paths: Paths, login: LoginState | None) -> dict[str, Any]:
    from ot.cli.servers import login_row

    why = pack.broken
    return {
        "name": pack.name,
        "from": _whose(pack, paths),
        "tools": None if pack.pending else 0 if why else len(pack.tools),
        "tokens": None if why else sum(map(_tokens, pack.tools.values())),
        "problem": "" if pack.pending else why,
        "login": login_row(login),
    }


def _whose(pack: Pack, paths: Paths) -> str:
    """Return where a pack comes from, in a word."""
    if pack.bundled:
        return "bundled"
    if pack.source == "proxy":
        return f"server {pack.server}"
    if not Path(pack.origin).is_absolute():
        return "installed"
    return "user" if Path(pack.origin).is_relative_to(paths.global_dir) else "project"


def _tokens(tool: Tool) -> int:
    from ot.stats.recorder import definition_chars

    return definition_chars(tool) // CHARACTERS_PER_TOKEN


def _tool_rows(app: Workspace, name: str) -> list[dict[str, Any]]:
    from ot.introspect.help import brief_description
    from ot.introspect.listing import sort_tools

    pack = app.picture.registry.pack(name)
    if pack.pending and (login := _logins(app).get(name)) and login.is_needed:
        server = pack.origin.partition(":")[2]
        why = f"what '{name}' offers is not known before a login: onetool auth login {server}"
        raise CommandFailed(why, DENIED)
    if pack.pending:
        why = f"what '{name}' offers is not known yet: onetool show {name} starts its server and asks"
        raise CommandFailed(why, BACKEND)
    if pack.broken:
        raise CommandFailed(f"pack '{name}' cannot be used: {pack.broken}", BACKEND)
    return [
        {"name": tool.full_name, "tokens": _tokens(tool), "description": brief_description(tool)}
        for tool in sort_tools(pack)
    ]


def _pack_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    from ot.cli.servers import login_words

    table = [(row["name"], row["from"], _count(row["tools"]), *_token_cell(row)) for row in rows]
    for line, row in zip(columns(table), rows, strict=True):
        yield line
        if row["problem"]:
            yield f"  {row['problem']}"
        if row["login"]:
            yield f"  {login_words(row['from'].removeprefix('server '), row['login'])}"


def _tool_lines(rows: list[dict[str, Any]]) -> list[str]:
    return columns([(row["name"], *_token_cell(row), row["description"]) for row in rows])


def _count(tools: int | None) -> str:
    return "not asked yet" if tools is None else pluralize(tools, "tool")


def _token_cell(row: Mapping[str, Any]) -> tuple[str, ...]:
    if "tokens" not in row:
        return ()
    return ("" if row["tokens"] is None else f"{row['tokens']:>7,} tokens",)


# ---------------------------------------------------------------- search


def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="What the tool should do, in your own words.")],
    as_json: AsJson = False,
) -> None:
    """Find tools, packs, snippets and aliases by the words of a task, as ot.help(query="...") does."""
    from ot.cli.terminal.own_workspace import workspace_at_rest

    with workspace_at_rest() as app:
        answer = answer_as_data(lambda: find_tools(app, words))
    raise typer.Exit(print_answer(answer, as_json=as_json))


def find_tools(app: Workspace, words: Sequence[str]) -> CommandAnswer:
    """Return the tools that fit the words of a task."""
    from ot.introspect.help import find_hits
    from ot.introspect.search import Catalogue

    registry, config = app.picture.registry, app.picture.loaded.config
    catalogue = Catalogue(registry, config)
    hits = find_hits(registry, config, lambda query, most: catalogue.find(query, most=most), " ".join(words), "min")
    unasked = [pack.name for pack in _packs(app) if pack.pending]
    note = f"Not searched, because these servers were never asked what they offer: {', '.join(unasked)}"
    nothing = f"nothing fits '{' '.join(words)}': onetool list shows what there is"
    failed = ("", OK) if hits else (nothing, NOT_FOUND)
    return CommandAnswer(hits, list(_hit_lines(hits)), _warnings(app), [note] if unasked else [], *failed)


def _hit_lines(found: Mapping[str, Any]) -> Iterator[str]:
    for hit in found.get("tools", ()):
        yield f"{hit['name']}{hit['signature']}"
        if hit["description"]:
            yield f"    {hit['description']}"
    for kind in ("packs", "snippets"):
        if kind in found:
            names = (hit if isinstance(hit, str) else hit["name"] for hit in found[kind])
            yield f"{kind}: {', '.join(names)}"
    if "aliases" in found:
        yield f"aliases: {', '.join(found['aliases'])}"
    if "unmatched" in found:
        yield f"words that fit nothing: {', '.join(found['unmatched'])}"
