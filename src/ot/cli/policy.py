"""onetool allow, ask and deny: the user's say over single tools, written into the user's own configuration."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from ot.cli.terminal import echo

if TYPE_CHECKING:
    from ot.config.clients.found_server import Rule


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("allow", epilog="Example: onetool allow 'github.search_*'")(allow)
    app.command("ask", epilog="Example: onetool ask '*.delete_*'")(ask)
    app.command("deny", epilog="Example: onetool deny 'vault.*'")(deny)


Pattern = Annotated[
    str, typer.Argument(help="Tools as pack.tool; * stands for any text, as in github.* or *.delete_*.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def allow(pattern: Pattern, as_json: AsJson = False) -> None:
    """Let tools run without a question."""
    _put("allow", pattern, as_json)


def ask(pattern: Pattern, as_json: AsJson = False) -> None:
    """Have a question asked before tools run."""
    _put("ask", pattern, as_json)


def deny(pattern: Pattern, as_json: AsJson = False) -> None:
    """Let no program call tools."""
    _put("deny", pattern, as_json)


def _put(rule: Rule, pattern: str, as_json: bool) -> None:
    from ot.config.edit_config import edit_config
    from ot.config.paths import Paths
    from ot.config.policy_edit import with_pattern

    edited = edit_config(Paths.find(), lambda text: with_pattern(text, rule, pattern), use_global=True)
    if as_json:
        echo(json.dumps({"rule": rule, "pattern": pattern, "file": str(edited.file), "changed": edited.changed}))
    elif edited.changed:
        echo(f"{rule}: {pattern}, in {edited.file}")
    else:
        echo(f"{rule}: {pattern} is in {edited.file} already")
