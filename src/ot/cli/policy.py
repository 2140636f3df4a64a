"""onetool allow, ask and deny: the user's say over single tools, written into the user's own configuration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from ot.cli.terminal import echo, echo_either
from ot.cli.terminal.completion import complete_tools
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.build import Picture
    from ot.config.models import PolicyRule

Pattern = Annotated[
    str,
    typer.Argument(
        help="Tools as pack.tool; * stands for any text, as in github.* or *.delete_*.", autocompletion=complete_tools
    ),
]


NEEDS_OF_ARGUMENTS = {"ot.stats(output=...)": ("file.write",)}
"""What calls another tool when it is given an argument, and needs nothing without it."""


def allow(pattern: Pattern, as_json: AsJson = False) -> None:
    """Let tools run without asking."""
    _put("allow", pattern, as_json)


def ask(pattern: Pattern, as_json: AsJson = False) -> None:
    """Ask before tools run."""
    _put("ask", pattern, as_json)


def deny(pattern: Pattern, as_json: AsJson = False) -> None:
    """Forbid tools to all programs."""
    _put("deny", pattern, as_json)


def _put(rule: PolicyRule, pattern: str, as_json: bool) -> None:
    from ot.config.edit_config import edit_config, with_pattern
    from ot.config.paths import Paths

    paths = Paths.find()
    edited = edit_config(paths, lambda text: with_pattern(text, rule, pattern), use_global=True)
    unknown, covered = _consequences(pattern)
    told = {"rule": rule, "pattern": pattern, "file": str(edited.file), "changed": edited.changed}
    where = f", in {edited.file}" if edited.changed else f" is in {edited.file} already"
    lines = [f"{rule}: {pattern}{where}"]
    if covered and rule != "allow":
        told |= {"also": covered}
        lines.append(f"It also covers these, which need the permission of what it names: {', '.join(covered)}")
    echo_either(as_json, told | ({"warning": unknown} if unknown else {}), lines)
    if unknown and not as_json:
        echo(f"warning: {unknown}", err=True)


def _consequences(pattern: str) -> tuple[str, list[str]]:
    """Return what is wrong with *pattern*, if anything, and the tools that it also covers because of what they need."""
    from fnmatch import fnmatchcase

    from ot.cli.terminal.own_workspace import workspace_at_rest
    from ot.errors import OneToolError

    try:
        with workspace_at_rest() as app:
            picture = app.picture
            needs = {tool.full_name: tool.needs for tool in picture.registry.tools()} | NEEDS_OF_ARGUMENTS
            others = {name: tools for name, tools in needs.items() if not fnmatchcase(name, pattern)}
            covered = [name for name, tools in others.items() if any(fnmatchcase(tool, pattern) for tool in tools)]
            return _unknown(pattern, picture), covered
    except OneToolError:
        return "", []  # the project's configuration cannot be read, which is not what was asked for


def _unknown(pattern: str, picture: Picture) -> str:
    """Return a note that no tool matches *pattern*; an empty text if one does, or might on a server not asked yet."""
    from fnmatch import fnmatchcase

    from ot.config.setting_types import pack_name
    from ot.nearest_names import did_you_mean, listing

    packs, servers = picture.registry.packs, picture.loaded.config.servers
    pack, _, tool = pattern.partition(".")
    disabled = {server.pack or pack_name(name) for name, server in servers.items()} - set(packs)
    if re.search(r"[*?\[]", pack) or pack in disabled:
        return ""
    if pack not in packs:
        return f"there is no pack '{pack}' here; the rule applies when there is. Packs: {listing(pack, list(packs))}"
    if packs[pack].broken or any(fnmatchcase(name, tool) for name in packs[pack].tools):
        return ""  # what a server offers is not known before it was asked
    guess = did_you_mean(tool, list(packs[pack].tools))
    more = f". Did you mean '{pack}.{guess}'?" if guess else ""
    return f"there is no tool '{pattern}' here; the rule applies when there is{more}"
