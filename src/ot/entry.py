"""The way in of ``onetool``: what needs no other module is answered at once."""

from __future__ import annotations

import gc
import os
import sys

SHARED = "--shared"


def main() -> None:
    """Answer ``--version`` and ``--help``, and let the shared server answer what it can; the rest is answered here."""
    _leave_the_working_directory_off_the_path()
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from ot.version import installed_version

        sys.stdout.write(f"{installed_version()}\n")
    elif arguments in (["--help"], ["--help", "--all"]):
        from ot.cli.overview import overview

        sys.stdout.write(overview(every=len(arguments) > 1))
    elif not _relayed(arguments) and not _answered(arguments):
        # To look for plugins of the library that checks settings, the metadata of every installed package is read.
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        gc.disable()  # imports make many objects and hardly any garbage; whoever goes on to work turns it on
        from ot.cli.main import run_command

        run_command([argument for argument in arguments if argument != SHARED or arguments[0] != "serve"])


def _relayed(arguments: list[str]) -> bool:
    """Return whether the client was served by the shared server."""
    if arguments[:1] != ["serve"] or SHARED not in arguments or "--help" in arguments:
        return False
    if os.name != "posix" or any(argument.startswith("--http") for argument in arguments):
        return False  # there is nothing to relay by, or no client that could be relayed
    from ot.relay.relay import relay

    return relay(arguments)


def _answered(arguments: list[str]) -> bool:
    """Return False unless the shared server answers the command; then this does not return."""
    if os.name != "posix" or arguments[:1] not in (["run"], ["list"], ["search"], ["show"]):
        return False
    from ot.cli.sharing.quick_command import answered

    return answered(arguments)


def _leave_the_working_directory_off_the_path() -> None:
    """Import nothing from where programs may write: a file of theirs must not become a module of the server."""
    places = (".", os.environ.get("OT_CWD") or ".")
    here = [real for place in places if (real := _real(os.path.expanduser(place)))]  # noqa: PTH111 - pathlib's import takes longer than everything here
    # In a checkout the plugins that belong to it lie beside it.
    places_of_ours = (f"{__file__}/../..", sys.prefix, sys.base_prefix, f"{__file__}/../../../plugins")
    ours = [os.path.realpath(place) for place in places_of_ours]

    def is_ours(entry: str) -> bool:
        real = _real(entry or ".")
        return not _is_below(real, here) or real == ours[0] or _is_below(real, ours[1:])

    sys.path[:] = filter(is_ours, sys.path)


def _real(place: str) -> str:
    """Return where *place* is; nothing for one that is relative to a working directory that was deleted."""
    try:
        return os.path.realpath(place)
    except FileNotFoundError:
        return ""


def _is_below(path: str, places: list[str]) -> bool:
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)
