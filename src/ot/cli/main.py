"""The entry of the ``onetool`` command."""

from __future__ import annotations

import os
import sys

from ot.errors import OneToolError


def main() -> None:
    """Run the command; what goes wrong on purpose ends with a sentence, not a traceback."""
    _leave_the_working_directory_off_the_path()
    try:
        _dispatch(sys.argv[1:])
    except OneToolError as error:
        from ot.cli.terminal import echo

        echo(f"onetool: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _leave_the_working_directory_off_the_path() -> None:
    """Import nothing from where programs may write: a file of theirs must not become a module of the server."""
    here = [os.path.realpath(os.path.expanduser(place)) for place in (".", os.environ.get("OT_CWD") or ".")]  # noqa: PTH111 - pathlib's import alone would slow down --version
    ours = [os.path.realpath(place) for place in (f"{__file__}/../../..", sys.prefix, sys.base_prefix)]

    def is_ours(entry: str) -> bool:
        real = os.path.realpath(entry or ".")
        return not _is_below(real, here) or real == ours[0] or _is_below(real, ours[1:])

    sys.path[:] = filter(is_ours, sys.path)


def _is_below(path: str, places: list[str]) -> bool:
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def _dispatch(arguments: list[str]) -> None:
    # Clients start the server many times a day: the plain form does without the command-line library's import.
    if arguments == ["serve"]:
        from ot.cli.terminal.own_workspace import serve_stdio

        serve_stdio(trust_project=False)
        return
    from ot.cli.commands import app

    app()
