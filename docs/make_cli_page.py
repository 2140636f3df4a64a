"""Writes docs/reference/cli.md from the commands' own help; a test fails when the page is behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

PAGE = Path(__file__).parent / "reference" / "cli.md"
HEAD = """\
# The command line

Data goes to standard output, talk to standard error.
Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 denied, 5 a server cannot be reached, 130 interrupted.
This page is made from the commands' own help: `python docs/make_cli_page.py`.
"""


def page() -> str:
    """Return the page as the commands stand now."""
    os.environ["COLUMNS"] = "100"
    from ot.cli.commands import app  # noqa: PLC0415 - the width of help texts is read at import

    root = typer.main.get_command(app)
    return HEAD + "".join(f"\n## {name}\n\n```text\n{text}\n```\n" for name, text in _helps(root, "onetool"))


def _helps(command: Any, name: str) -> Iterator[tuple[str, str]]:
    context = command.make_context(name, [], resilient_parsing=True)
    yield name, command.get_help(context).replace("\b", "").strip()
    for sub, child in getattr(command, "commands", {}).items():
        yield from _helps(child, f"{name} {sub}")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
