"""How more of OneTool is installed, from where this installation came from."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

NAME = "onetool-run"
TOOL_RECEIPT = "uv-receipt.toml"
"""What uv keeps in the environment of a tool that it has installed."""


def install_command(extra: str) -> str:
    """Return the command that adds *extra* to this installation, from where it was installed."""
    try:
        said = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        said = None
    return command_of(extra, json.loads(said or "{}"), Path(sys.prefix))


def command_of(extra: str, origin: Mapping[str, Any], environment: Path) -> str:
    """Return the command for the installation in *environment*; *origin* is what PEP 610 says of where it is from."""
    is_tool = (environment / TOOL_RECEIPT).exists()
    start = ["uv", "tool", "install"] if is_tool else ["uv", "pip", "install", "--python", str(environment)]
    editable = ["--editable"] if origin.get("dir_info", {}).get("editable") else []
    return shlex.join([*start, *editable, _requirement(extra, origin)])


def _requirement(extra: str, origin: Mapping[str, Any]) -> str:
    if not (url := str(origin.get("url", ""))):
        return f"{NAME}[{extra}]"
    if "dir_info" in origin:
        return f"{unquote(urlsplit(url).path)}[{extra}]"
    kind = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
    return f"{NAME}[{extra}] @ {kind}{url}"
