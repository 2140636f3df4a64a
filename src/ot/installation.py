"""How to install more of OneTool, depending on how it was installed."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement

NAME = "onetool-run"
TOOL_RECEIPT = "uv-receipt.toml"
"""What uv keeps in the environment of a tool that it has installed."""
OLDEST = 12
"""The minor version of the oldest Python 3 that OneTool runs on."""


def install_command(extra: str, running: int = sys.version_info.minor) -> str:
    """Return the command that adds *extra* to this installation on Python 3.*running*, from where it was installed."""
    try:
        installed = distribution(NAME)
    except PackageNotFoundError:
        return command_of(extra, {}, Path(sys.prefix))
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    return command_of(extra, origin, Path(sys.prefix), newest_python(extra, installed.requires or [], running))


def newest_python(extra: str, requires: Sequence[str], running: int) -> str:
    """Return the newest Python for which all libraries of *extra* are there, or nothing if that is 3.*running*."""
    wanted = [Requirement(text) for text in requires]

    def libraries(minor: int) -> set[str]:
        there = {"extra": extra, "python_version": f"3.{minor}", "python_full_version": f"3.{minor}.0"}
        return {one.name for one in wanted if one.marker is None or one.marker.evaluate(there)}

    newest = max(minor for minor in range(OLDEST, running + 1) if libraries(minor) >= libraries(OLDEST))
    return f"3.{newest}" if newest < running else ""


def command_of(extra: str, origin: Mapping[str, Any], environment: Path, python: str = "") -> str:
    """Return the command for the installation in *environment*; *origin* is what PEP 610 says of where it is from.

    With another *python* it is a new installation.
    """
    is_tool = python or (environment / TOOL_RECEIPT).exists()
    start = ["uv", "tool", "install"] if is_tool else ["uv", "pip", "install", "--python", str(environment)]
    start += ["--python", python] if python else []
    editable = ["--editable"] if origin.get("dir_info", {}).get("editable") else []
    return shlex.join([*start, *editable, _requirement(extra, origin)])


def _requirement(extra: str, origin: Mapping[str, Any]) -> str:
    if not (url := str(origin.get("url", ""))):
        return f"{NAME}[{extra}]"
    if "dir_info" in origin:
        return f"{unquote(urlsplit(url).path)}[{extra}]"
    kind = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
    return f"{NAME}[{extra}] @ {kind}{url}"
