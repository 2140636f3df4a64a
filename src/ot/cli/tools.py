"""onetool list, search and show: the tools that programs can call, looked up without calling one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import BACKEND, DENIED, NOT_FOUND
from ot.cli.terminal import columns, counted, echo, echo_either, echo_json, fail
from ot.cli.terminal.completion import complete_packs, complete_tools
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.config.paths import Paths
    from ot.registry.tool import Tool
    from ot.registry.tool_registry import Pack
    from ot.servers.auth.login_state import LoginState
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
        _warn(app)
        rows = _tool_rows(app, pack) if pack else _pack_rows(app)
    if not tokens:
        rows = [{key: value for key, value in row.items() if key != "tokens"} for row in rows]
    echo_either(as_json, rows, _tool_lines(rows) if pack else _pack_lines(rows))
    if tokens and not as_json:
        total = sum(row["tokens"] or 0 for row in rows)
        echo(f"Listed one by one, they would take about {total:,} tokens of every request (estimate).", err=True)


def _warn(app: Workspace) -> None:
    """Say what the configuration leaves out, such as the packs of a project that is not trusted."""
    for warning in app.picture.loaded.warnings:
        echo(f"warning: {warning}", err=True)


def _packs(app: Workspace) -> list[Pack]:
    packs = app.picture.registry.packs
    return [packs[name] for name in sorted(packs)]


def _pack_rows(app: Workspace) -> list[dict[str, Any]]:
    logins = _logins(app)
    return [_pack_row(one, app.paths, logins.get(one.name)) for one in _packs(app)]


def _logins(app: Workspace) -> dict[str, LoginState]:
    """Return how the logins at servers are, by pack."""
    from ot.servers.auth.login_state import login_states

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
        return f"server {pack.origin.partition(':')[2]}"
    if not Path(pack.origin).is_absolute():
        return "installed"
    return "user" if Path(pack.origin).is_relative_to(paths.global_dir) else "project"


def _tokens(tool: Tool) -> int:
    from ot.stats.recorder import definition_chars

    return definition_chars(tool) // CHARACTERS_PER_TOKEN


def _tool_rows(app: Workspace, name: str) -> list[dict[str, Any]]:
    from ot.introspect.help import brief_description
    from ot.introspect.listing import sorted_tools

    pack = app.picture.registry.pack(name)
    if pack.pending and (login := _logins(app).get(name)) and login.is_needed:
        server = pack.origin.partition(":")[2]
        fail(f"what '{name}' offers is not known before a login: onetool auth login {server}", DENIED)
    if pack.pending:
        fail(f"what '{name}' offers is not known yet: onetool show {name} starts its server and asks", BACKEND)
    if pack.broken:
        fail(f"pack '{name}' cannot be used: {pack.broken}", BACKEND)
    return [
        {"name": tool.full_name, "tokens": _tokens(tool), "description": brief_description(tool)}
        for tool in sorted_tools(pack)
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
    return "not asked yet" if tools is None else counted(tools, "tool")


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
    from ot.introspect.help import found_by
    from ot.introspect.search import Catalogue

    with workspace_at_rest() as app:
        _warn(app)
        registry, config = app.picture.registry, app.picture.loaded.config
        catalogue = Catalogue(registry, config)
        found = found_by(registry, config, lambda query, most: catalogue.find(query, most=most), " ".join(words), "min")
        unasked = [pack.name for pack in _packs(app) if pack.pending]
    echo_either(as_json, found, _hit_lines(found))
    if unasked and not as_json:
        echo(f"Not searched, because these servers were never asked what they offer: {', '.join(unasked)}", err=True)
    if not found:
        fail(f"nothing fits '{' '.join(words)}': onetool list shows what there is", NOT_FOUND)


def _hit_lines(found: Mapping[str, Any]) -> Iterator[str]:
    for hit in found.get("tools", ()):
        yield f"{hit['name']}{hit['signature']}"
        if hit["description"]:
            yield f"    {hit['description']}"
    for kind in ("packs", "snippets"):
        if kind in found:
            yield f"{kind}: {', '.join(hit['name'] for hit in found[kind])}"
    if "aliases" in found:
        yield f"aliases: {', '.join(found['aliases'])}"
    if "unmatched" in found:
        yield f"words that fit nothing: {', '.join(found['unmatched'])}"


# ---------------------------------------------------------------- show


def show(
    name: Annotated[
        str, typer.Argument(metavar="PACK.TOOL", help="A tool, or a pack alone.", autocompletion=complete_tools)
    ],
    as_json: AsJson = False,
) -> None:
    """Show everything about a tool, or how to use a pack.

    Of a tool: its signature, description, source and return type, whether it says that it is read-only or
    destructive, and whether a call runs, asks first or is denied. A server that was never asked what it offers
    is started and asked.
    """
    from ot.cli.terminal.event_loop import run_async

    text, plain = run_async(_shown(name))
    if as_json:
        echo_json(plain)
    else:
        echo(text.rstrip())


async def _shown(name: str) -> tuple[str, dict[str, Any]]:
    """Return what is known of a tool or a pack, for a person and for a program."""
    from ot.cli.terminal.own_workspace import own_workspace
    from ot.errors import ToolUnavailable
    from ot.introspect.help import HelpPages
    from ot.introspect.listing import pack_entry

    async with own_workspace(terminal_level="ERROR") as app:
        config = app.picture.loaded.config
        pack_name, _, tool_name = config.aliases.get(name, name).removesuffix("()").partition(".")
        await app.definitions_of([pack_name])
        pack = app.picture.registry.pack(pack_name)
        if pack.broken:
            raise ToolUnavailable(pack.name, pack.broken)
        pages = HelpPages(config.prompts.packs, config.docs_url)
        if not tool_name:
            return pages.pack(pack), pack_entry(pack, "full", config.prompts.packs)
        tool = app.picture.registry.tool(pack_name, tool_name)
        facts = _facts(app, tool)
        policy = f"Policy: {facts['policy']['action']} ({facts['policy']['why']})"
        groups = [f"For members of {name}: {action}" for name, action in facts["policy"].get("groups", {}).items()]
        return pages.tool(tool, pack, "full", [policy, *groups]), facts


def _facts(app: Workspace, tool: Tool) -> dict[str, Any]:
    from ot.execution.policy import why
    from ot.introspect.listing import tool_entry

    executor = app.picture.runner.executor
    verdict = executor.verdict(tool)
    groups = {name: executor.verdict(tool, frozenset({name})) for name in app.picture.loaded.config.policy.groups}
    others = {name: said.action for name, said in groups.items() if said.action != verdict.action}
    return tool_entry(tool, "full") | {
        "return_type": tool.returns or tool.observed,
        "read_only": tool.read_only,
        "destructive": tool.destructive,
        "timeout": tool.timeout,
        "policy": {"action": verdict.action, "why": why(verdict, tool)} | ({"groups": others} if others else {}),
    }
