"""The console script: answers what needs no further imports, and leaves the rest to ``ot.cli`` or the shared server."""

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
        gc.disable()  # imports make many objects and hardly any garbage; it is turned on once work begins
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
    # In a checkout the packs and the plugins that belong to it lie beside it.
    roots = [os.path.realpath(f"{__file__}/../../{place}") for place in ("", "../packs")]
    trees = [os.path.realpath(place) for place in (sys.prefix, sys.base_prefix, f"{__file__}/../../../plugins")]

    def is_ours(entry: str) -> bool:
        real = _real(entry or ".")
        return not _is_below(real, here) or real in roots or _is_below(real, trees)

    sys.path[:] = filter(is_ours, sys.path)


def _real(place: str) -> str:
    """Return the real path of *place*; nothing if it is relative to a deleted working directory."""
    try:
        return os.path.realpath(place)
    except FileNotFoundError:
        return ""


def _is_below(path: str, places: list[str]) -> bool:
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)
