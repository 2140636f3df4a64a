"""onetool show: everything that is known of one tool, or how to use a pack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.terminal.command_answer import CommandAnswer, answer_as_data
from ot.cli.terminal.completion import complete_tools
from ot.cli.terminal.options import AsJson
from ot.cli.terminal.printed_answers import print_answer

if TYPE_CHECKING:
    from ot.registry.tool import Tool
    from ot.workspace import Workspace


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

    answer = answer_as_data(lambda: run_async(_show_here(name)))
    raise typer.Exit(print_answer(answer, as_json=as_json))


async def _show_here(name: str) -> CommandAnswer:
    from ot.cli.terminal.own_workspace import own_workspace

    async with own_workspace(terminal_level="ERROR") as app:
        return await describe_name(app, name)


async def describe_name(app: Workspace, name: str) -> CommandAnswer:
    """Return what is known about a tool or a pack.

    Raises:
        OneToolError: There is none of that name, or it cannot be used.
    """
    from ot.errors import ToolUnavailable
    from ot.introspect.help import HelpPages
    from ot.introspect.listing import pack_entry

    config = app.picture.loaded.config
    pack_name, _, tool_name = config.aliases.get(name, name).removesuffix("()").partition(".")
    await app.definitions_of([pack_name])
    pack = app.picture.registry.pack(pack_name)
    if pack.broken:
        raise ToolUnavailable(pack.name, pack.broken)
    pages = HelpPages(config.prompts.packs, config.docs_url)
    if not tool_name:
        return CommandAnswer(pack_entry(pack, "full", config.prompts.packs), [pages.pack(pack).rstrip()])
    tool = app.picture.registry.tool(pack_name, tool_name)
    facts = _facts(app, tool)
    policy = f"Policy: {facts['policy']['action']} ({facts['policy']['why']})"
    groups = [f"For members of {name}: {action}" for name, action in facts["policy"].get("groups", {}).items()]
    return CommandAnswer(facts, [pages.tool(tool, pack, "full", [policy, *groups]).rstrip()])


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
