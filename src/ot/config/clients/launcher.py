"""How a client starts OneTool: by an absolute path, for applications do not see the PATH of a shell."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from ot.config.clients.server_entry import OURSELVES, table
from ot.errors import ConfigError

PACKAGE = "onetool-run"
SHARED = "--shared"
FLEETING = re.compile(r"(?:archive|environments|builds)-v\d+")
"""Directories of uv's cache: what ``uvx`` runs lies there, and may be gone tomorrow."""


def launch_command(argv0: str, prefix: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command that starts the server that is running now, tomorrow and from anywhere.

    Raises:
        ConfigError: There is none that lasts.
    """
    if any(FLEETING.fullmatch(part) for part in prefix.parts):
        return (_lasting_uvx(prefix, environ), "--from", _requirement(), "onetool", "serve")
    called = Path(argv0)
    # As it was called: the link that `uv tool install` makes outlives the environment behind it.
    if called.parent.name and called.stem in OURSELVES and called.is_file():
        return (str(called.absolute()), "serve")
    beside = shutil.which("onetool", path=sysconfig.get_path("scripts", vars={"base": str(prefix)}))
    if found := beside or shutil.which("onetool", path=environ.get("PATH")):
        return (str(Path(found).absolute()), "serve")
    raise ConfigError("the command 'onetool' was not found", hint="install OneTool with 'uv tool install'")


def _lasting_uvx(prefix: Path, environ: Mapping[str, str]) -> str:
    """Return the user's own uvx: the environment that it made has one too, which is as fleeting as all of it."""
    entries = environ.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(entry for entry in entries if not Path(entry).is_relative_to(prefix))
    if found := shutil.which("uvx", path=path):
        return str(Path(found).absolute())
    raise ConfigError(
        "this OneTool was started by uvx, which is not on the PATH", hint="install OneTool with 'uv tool install'"
    )


def _requirement() -> str:
    """Return the requirement for uvx: the package's name, or where it was installed from."""
    try:
        text = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return PACKAGE
    origin = table(json.loads(text)) if text else {}
    vcs = table(origin.get("vcs_info"))
    url = str(origin.get("url") or PACKAGE)
    return f"{vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs.get("commit_id") else url


def this_launch_command(*, shared: bool) -> tuple[str, ...]:
    """Return the command by which a client reaches the OneTool of this process: *shared*, or its own."""
    command = launch_command(sys.argv[0], Path(sys.prefix), os.environ)
    return (*command, SHARED) if shared else command
