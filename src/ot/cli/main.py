"""Runs one command, and says how it failed in a sentence and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ot.cli.exit_codes import INTERRUPTED, exit_code
from ot.errors import OneToolError


def run_command(arguments: Sequence[str]) -> None:
    """Run the command; what goes wrong on purpose ends with a sentence, not a traceback."""
    try:
        _dispatch(arguments)
    except OneToolError as error:
        from ot.cli.terminal import echo

        echo(f"onetool: {error}", err=True)
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _dispatch(arguments: Sequence[str]) -> None:
    # Clients start the server many times a day: the plain form does without the command-line library's import.
    if arguments == ["serve"]:
        from ot.cli.terminal.own_workspace import serve_stdio

        serve_stdio(trust_project=False)
        return
    from ot.cli.commands import build_app

    build_app(next(iter(arguments), ""))()
