"""Writes docs/reference/cli.md from the commands' own help; a test fails when the page is behind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer.main

from ot.cli.command_table import all_commands
from ot.cli.exit_codes import MEANINGS
from ot.cli.overview import overview

PAGE = Path(__file__).parent / "reference" / "cli.md"
HEAD = """\
# The command line

Data goes to standard output, messages to standard error.
With `--json`, which every command has, the data is JSON on one line.
Nothing is asked where nobody sits at a terminal, and `NO_COLOR` is heeded.
This page is made from the commands' own help: `python docs/make_cli_page.py`.

```text
{overview}```

## Exit codes

| code | is | means |
|---|---|---|
{codes}
`onetool run` ends with 3, 4, 5 or 124 when a call or a limit ended the program and it did not catch that.
`onetool check` and `onetool doctor` end with 1 when something is wrong.

## Shell completion

`onetool --install-completion` teaches bash, zsh, fish or PowerShell to complete commands, options and names:
of servers, packs, tools and clients.
No server is started for that: its tools are completed once it was asked what it offers.
"""


def page() -> str:
    """Return the page as the commands stand now."""
    os.environ["COLUMNS"] = "100"
    from ot.cli.commands import build_app  # noqa: PLC0415 - the width of help texts is read at import

    root = typer.main.get_command(build_app())
    codes = "".join(f"| {code} | {word} | {meaning} |\n" for code, (word, meaning) in MEANINGS.items())
    groups = "".join(_group(root, name, [row[0] for row in rows]) for name, rows in all_commands().items())
    return HEAD.format(overview=overview(every=True), codes=codes) + groups


def _group(root: Any, title: str, names: list[str]) -> str:
    parts = (f"\n### onetool {name}\n\n```text\n{_help(root, name)}\n```\n" for name in names)
    return f"\n## {title}\n{''.join(parts)}"


def _help(command: Any, name: str) -> str:
    for word in name.split():
        command = command.commands[word]
    context = command.make_context(f"onetool {name}", [], resilient_parsing=True)
    return command.get_help(context).replace("\b", "").strip()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
