"""The types that settings are made of: names, patterns, addresses, and what all settings share."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable
from pathlib import PurePath, PurePosixPath
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ot import hooks

NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*\Z")
TOOL_NAME = re.compile(r"\A[a-zA-Z]\w*+\.[a-zA-Z]\w*+\Z")
RESERVED = frozenset({"ot", "proj"}) | frozenset(dir(builtins)) | frozenset(keyword.kwlist)
"""Names that an alias may not take: a program would silently mean something else."""

NO_PACK = "'{}' cannot be a pack's name: it is not a Python name, or is taken"
LINK_LOCAL = ("169.254.", "fe80:", "::ffff:169.254.", "fd00:ec2:")

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


def fit(is_fit: Callable[[str], object], otherwise: str) -> AfterValidator:
    """Return a check that a text is fit; the text stands in *otherwise* as {}."""

    def check(text: str) -> str:
        if not is_fit(text):
            raise ValueError(otherwise.format(text))
        return text

    return AfterValidator(check)


def _is_free_name(name: str) -> bool:
    return bool(NAME.match(name)) and name not in RESERVED


def _project_name(name: str) -> str:
    if not NAME.match(name) or keyword.iskeyword(name):
        raise ValueError(f"'{name}' cannot be a project's name: a program could not write proj.{name}")
    if name in ("path", "list"):
        raise ValueError(f"'{name}' cannot be a project's name: proj.{name} is a function")
    return name


def _server_name(name: str) -> str:
    if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_.-]{0,63}", name):
        raise ValueError(f"'{name}' cannot be a server's name: use letters, digits, '_', '.' and '-'")
    if not _is_free_name(pack := pack_name(name)):
        raise ValueError(NO_PACK.format(pack))
    return name


def pack_name(server: str) -> str:
    """Return the name of the pack that a server becomes when none is given."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", server)


def server_address(url: str) -> str:
    """Return *url* if a server may be there: http or https, a host, and not a cloud's own metadata address.

    Raises:
        ValueError: It may not.
    """
    if not url:
        return url
    parts = urlsplit(url.replace("${", "").replace("}", ""))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"'{url[:100]}' is not an address of a server: write http:// or https:// and a host")
    if parts.hostname.startswith(LINK_LOCAL):
        raise ValueError(f"'{url[:100]}' is a link-local address, where clouds keep credentials: no server is there")
    return url


def _tool_pattern(pattern: str) -> str:
    # Matched against pack.tool, a bare name would match nothing and seem to protect.
    if "." not in pattern and "*" not in pattern:
        raise ValueError(f"'{pattern}' matches no tool: write '{pattern or '<pack>'}.*' for all tools of a pack")
    literal = re.sub(r"\[[^]]+\]", "", pattern)
    if literal.count(".") > 1 or re.search(r"[^\w.*?]", literal):
        pack, dot, tool = pattern.rpartition(".")
        better = re.sub(r"[^\w*?]", "_", pack) + dot + re.sub(r"[^\w*?]", "_", tool)
        raise ValueError(f"'{pattern}' matches no tool: names have '_' for any other sign: write '{better}'")
    return pattern


STORE_URL = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[\w./=-]*+)?+|file:///[^?#]++")


def _is_store(url: str) -> bool:
    scheme = url.partition("://")[0]
    is_plugins = scheme not in ("s3", "file") and hooks.hook_named(hooks.STORES, f"results.{scheme}")
    return not url or (".." not in url.split("/") and bool(is_plugins or STORE_URL.fullmatch(url)))


def _is_inside(path: str) -> bool:
    parts = PurePosixPath(path)
    return bool(path) and not (parts.is_absolute() or path[0] == "~" or ".." in parts.parts or "\\" in path)


Texts = Annotated[tuple[str, ...], Field(strict=False)]
AliasName = Annotated[str, fit(_is_free_name, "'{}' cannot be an alias: it is not a Python name, or is taken")]
ToolName = Annotated[str, fit(TOOL_NAME.fullmatch, "an alias must name a tool as pack.function, not '{}'")]
SnippetName = Annotated[str, fit(NAME.match, "'{}' cannot be a snippet's name: use letters, digits and _")]
ProjectName = Annotated[str, AfterValidator(_project_name)]
PackName = Annotated[str, fit(lambda pack: not pack or _is_free_name(pack), NO_PACK)]
ServerName = Annotated[str, AfterValidator(_server_name)]
ToolPatterns = Annotated[tuple[Annotated[str, AfterValidator(_tool_pattern)], ...], Field(strict=False)]
Directory = Annotated[
    str, fit(lambda path: not path or path[0] in "/~" or PurePath(path).is_absolute(), "'{}' must be an absolute path")
]
WebAddress = Annotated[str, AfterValidator(server_address)]
StoreAddress = Annotated[
    str, fit(_is_store, "'{}' is not an address of a store: write s3://bucket/prefix or file:///directory")
]
InsidePath = Annotated[str, fit(_is_inside, "'{}' must be a path inside the .onetool directory, without '..'")]


class Settings(BaseModel):
    """What all settings share: frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)
