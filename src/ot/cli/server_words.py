"""Reads what a user types after ``onetool add``: a name perhaps, and a command line, an address or a package."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

import typer

from ot.config.clients.literal_secrets import SecretsTaken
from ot.config.clients.server_entry import own_name

LAUNCHERS = frozenset(
    {
        "npx",
        "uvx",
        "uv",
        "npm",
        "pnpm",
        "bunx",
        "bun",
        "deno",
        "node",
        "python",
        "python3",
        "docker",
        "podman",
        "pipx",
        "go",
    }
)
SHORT = {"npx": ["npx", "-y"], "uvx": ["uvx"]}
PACKAGE_EDGES = re.compile(r"^(?:mcp-server-|server-|mcp-)|(?:-mcp-server|-server|-mcp|_mcp)$")
SWITCHES = frozenset({"run", "exec", "dlx", "x", "tool", "-m", "--from", "--rm", "-i", "-y", "--yes", "-q"})


def name_and_words(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name that was given, or none, and the words of the command or the address."""
    words = shlex.split(words[0]) if len(words) == 1 and " " in words[0] else list(words)
    if not words:
        raise typer.BadParameter("give a command, an address, npx:PACKAGE or uvx:PACKAGE")
    if _is_target(words[0]):
        return "", _spelled_out(words)
    if len(words) > 1:
        rest = shlex.split(words[1]) if len(words) == 2 and " " in words[1] else words[1:]
        return words[0], _spelled_out(rest)
    if shutil.which(words[0]):
        return "", words
    raise typer.BadParameter(f"there is no program '{words[0]}': write npx:{words[0]}, uvx:{words[0]} or an address")


def guessed_name(words: Sequence[str]) -> str:
    """Return a name for the server: that of its package, or of its host."""
    if _is_address(words[0]):
        return own_name(_of_host(urlsplit(words[0]).hostname or "server"))
    package = next((word for word in words[1:] if not word.startswith("-") and word not in SWITCHES), words[0])
    bare = re.split(r"(?<=.)[@=\[<>~]", PurePath(package).name if "/" in package else package)[0]
    return own_name(PACKAGE_EDGES.sub("", PACKAGE_EDGES.sub("", PurePath(bare).stem or bare)) or bare)


def entry_of_words(
    name: str, words: Sequence[str], env: Sequence[str], headers: Sequence[str], pack: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the server as it is written, and the secrets that were taken out of it."""
    taken = SecretsTaken(name)
    entry: dict[str, Any]
    if _is_address(words[0]):
        entry = {"url": taken.url(words[0])}
    else:
        entry = {"command": words[0], "args": taken.args(list(words[1:]))}
    more = {
        "env": taken.env(dict(_pair(text, "=", "--env NAME=VALUE") for text in env)),
        "headers": taken.headers(dict(_pair(text, ":=", "--header 'NAME: VALUE'") for text in headers)),
        "pack": pack,
    }
    return {key: value for key, value in {**entry, **more}.items() if value}, taken.taken


def _pair(text: str, marks: str, form: str) -> tuple[str, str]:
    name, *rest = re.split(f"[{marks}]", text, maxsplit=1)
    name = name.strip()
    if not re.fullmatch(r"[A-Za-z_][\w-]*", name, re.ASCII) or (not rest and ":" in marks):
        raise typer.BadParameter(f"'{name}': write {form}")
    # A name alone stands for the variable of that name.
    return name, rest[0].strip() if rest else f"${{{name}}}"


def _spelled_out(words: Sequence[str]) -> list[str]:
    kind, colon, package = words[0].partition(":")
    return [*SHORT[kind], package, *words[1:]] if colon and kind in SHORT else list(words)


def _is_target(word: str) -> bool:
    is_path = "/" in word or "\\" in word
    return _is_address(word) or word.partition(":")[0] in SHORT or PurePath(word).stem in LAUNCHERS or is_path


def _is_address(word: str) -> bool:
    return word.startswith(("http://", "https://"))


def _of_host(host: str) -> str:
    labels = [label for label in host.split(".") if label not in ("www", "mcp", "api")]
    return labels[0] if labels and not host.replace(".", "").isdigit() else "server"
