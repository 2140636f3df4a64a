"""What was typed after ``onetool add``: a name, and a command line, an address or a word with a colon."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

import typer

LAUNCHERS = (
    "npx", "uvx", "uv", "npm", "pnpm", "bunx", "bun", "deno", "node", "python", "python3", "docker", "podman", "pipx",
    "go",
)  # fmt: skip
SHORT = {"npx": ["npx", "-y"], "uvx": ["uvx"]}
SOURCES = ("openapi", "preset")
FORMS = "a command, an address, npx:PACKAGE, uvx:PACKAGE, openapi:FILE, openapi:ADDRESS or preset:NAME"
PACKAGE_EDGES = re.compile(r"^(?:mcp-server-|server-|mcp-)|(?:-mcp-server|-server|-mcp|_mcp)$")
SWITCHES = frozenset({"run", "exec", "dlx", "x", "tool", "-m", "--from", "--rm", "-i", "-y", "--yes", "-q"})


def name_and_arguments(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name that was given, or none, and the words of the command or the address."""
    import shlex

    words = shlex.split(words[0]) if len(words) == 1 and " " in words[0] else list(words)
    if not words:
        raise typer.BadParameter(f"give {FORMS}; onetool add --list shows the presets")
    if _is_target(words[0]):
        return "", _spell_out(words)
    if len(words) > 1:
        rest = shlex.split(words[1]) if len(words) == 2 and " " in words[1] else words[1:]
        return words[0], _spell_out(rest)
    if shutil.which(words[0]):
        return "", words
    raise typer.BadParameter(f"there is no program '{words[0]}': write npx:{words[0]}, uvx:{words[0]} or an address")


def source_of(words: Sequence[str]) -> tuple[str, str]:
    """Return ``openapi`` or ``preset`` and what follows the colon; nothing for a command or an address."""
    kind, colon, rest = words[0].partition(":")
    if not colon or kind not in SOURCES:
        return "", ""
    if len(words) > 1:
        raise typer.BadParameter(f"'{words[1]}': nothing may follow {words[0]}; options go before it")
    return kind, rest


def guess_name(words: Sequence[str]) -> str:
    """Return a name for the server: that of its package, or of its host."""
    from ot.config.clients.server_entry import own_name

    if _is_address(words[0]):
        return own_name(_of_host(urlsplit(words[0]).hostname or "server"))
    package = next((word for word in words[1:] if not word.startswith("-") and word not in SWITCHES), words[0])
    bare = re.split(r"(?<=.)[@=\[<>~]", PurePath(package).name if "/" in package else package)[0]
    return own_name(PACKAGE_EDGES.sub("", PACKAGE_EDGES.sub("", PurePath(bare).stem or bare)) or bare)


def entry_of_arguments(
    name: str,
    words: Sequence[str],
    env: Sequence[str],
    headers: Sequence[str],
    pack: str,
    start: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the server as it is written, and the secrets that were taken out of it; *start* stands for *words*."""
    from ot.config.clients.server_secrets import SecretsTaken

    taken = SecretsTaken(name)
    found = dict(start or start_of_words(words))
    if "url" in found:
        found["url"] = taken.url(found["url"])
    if "args" in found:
        found["args"] = taken.args(found["args"])
    given = {
        "env": taken.env(dict(_pair(text, "=", "--env NAME=VALUE") for text in env)),
        "headers": taken.headers(dict(_pair(text, ":=", "--header 'NAME: VALUE'") for text in headers)),
    }
    for key, pairs in given.items():
        found[key] = {**found.get(key, {}), **pairs}
    return {key: value for key, value in {**found, "pack": pack}.items() if value}, taken.taken


def start_of_words(words: Sequence[str]) -> dict[str, Any]:
    """Return the settings that say how a server of that command line or address is reached."""
    return {"url": words[0]} if _is_address(words[0]) else {"command": words[0], "args": list(words[1:])}


def _pair(text: str, marks: str, form: str) -> tuple[str, str]:
    name, *rest = re.split(f"[{marks}]", text, maxsplit=1)
    name = name.strip()
    if not re.fullmatch(r"[A-Za-z_][\w-]*", name, re.ASCII) or (not rest and ":" in marks):
        raise typer.BadParameter(f"'{name}': write {form}")
    # A name alone stands for the variable of that name.
    return name, rest[0].strip() if rest else f"${{{name}}}"


def _spell_out(words: Sequence[str]) -> list[str]:
    kind, colon, package = words[0].partition(":")
    return [*SHORT[kind], package, *words[1:]] if colon and kind in SHORT else list(words)


def _is_target(word: str) -> bool:
    is_path = "/" in word or "\\" in word
    kind, colon, _ = word.partition(":")
    is_short = bool(colon) and (kind in SHORT or kind in SOURCES)
    return _is_address(word) or is_short or PurePath(word).stem in LAUNCHERS or is_path


def _is_address(word: str) -> bool:
    return word.startswith(("http://", "https://"))


def _of_host(host: str) -> str:
    labels = [label for label in host.split(".") if label not in ("www", "mcp", "api")]
    return labels[0] if labels and not host.replace(".", "").isdigit() else "server"
