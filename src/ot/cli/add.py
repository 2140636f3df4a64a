"""onetool add: one more MCP server, and what came with it."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from ot.cli.exit_codes import BACKEND, OK
from ot.cli.terminal import counted, echo, echo_either
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.config.edit_config import Edited
    from ot.config.paths import Paths
    from ot.config.yaml_edit import YamlText
    from ot.servers.definitions import ServerDefinitions
    from ot.servers.spec import ServerSpec

FIRST_START_SECONDS = 120.0
"""Its package may have to be fetched first."""
LAUNCHERS = (
    "npx", "uvx", "uv", "npm", "pnpm", "bunx", "bun", "deno", "node", "python", "python3", "docker", "podman", "pipx",
    "go",
)  # fmt: skip
SHORT = {"npx": ["npx", "-y"], "uvx": ["uvx"]}
PACKAGE_EDGES = re.compile(r"^(?:mcp-server-|server-|mcp-)|(?:-mcp-server|-server|-mcp|_mcp)$")
SWITCHES = frozenset({"run", "exec", "dlx", "x", "tool", "-m", "--from", "--rm", "-i", "-y", "--yes", "-q"})


def add(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND", help="Optionally a name, then a command line, an address, npx:PACKAGE or uvx:PACKAGE."
        ),
    ],
    env: Annotated[
        list[str] | None,
        typer.Option("--env", "-e", help="NAME=VALUE for its environment; NAME alone takes a secret or a variable."),
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", help="'NAME: VALUE', sent with every request.")
    ] = None,
    pack: Annotated[str, typer.Option("--pack", help="The pack's name, if it differs.")] = "",
    use_global: Annotated[bool, typer.Option("--global/--project", help="Write ~/.onetool/ or ./.onetool/.")] = True,
    connect: Annotated[
        bool, typer.Option("--connect/--no-connect", help="Whether to start it and list its tools.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Add an MCP server whose tools become a pack; options go before the command."""
    from ot.config.clients.server_secrets import with_own_secrets
    from ot.config.edit_config import kept_secrets
    from ot.config.paths import Paths

    given, line = name_and_arguments(words)
    name = given or guessed_name(line)
    paths = Paths.find()
    written, taken = entry_of_arguments(name, line, env or (), header or (), pack)
    entry, secrets = with_own_secrets(name, written, taken, kept_secrets(paths, use_global=use_global))
    edited = _write(paths, name, entry, secrets, use_global)
    came = _looked(paths, name, entry, secrets, use_global) if connect else {}
    told = {"name": name, "file": str(edited.file), "secrets": sorted(secrets), "trusted": edited.trusted, **came}
    echo_either(as_json, told, _lines(told, edited, entry))
    raise typer.Exit(BACKEND if came.get("error") else OK)


def _write(paths: Paths, name: str, entry: dict[str, Any], secrets: dict[str, str], use_global: bool) -> Edited:
    from ot.config.edit_config import edit_config
    from ot.errors import ConfigError

    def change(text: YamlText) -> YamlText:
        if name in (text.get("servers") or {}):
            hint = f"onetool remove {name}, or give another name"
            raise ConfigError(f"there is already a server '{name}'", file=text.file, hint=hint)
        return text.put(("servers", name), entry)

    return edit_config(paths, change, use_global=use_global, secrets=secrets)


def _looked(
    paths: Paths, name: str, entry: dict[str, Any], secrets: dict[str, str], use_global: bool
) -> dict[str, Any]:
    """Return what the server brought, or why it could not be asked."""
    from ot.cli.terminal.event_loop import run_async
    from ot.errors import ServerUnavailable
    from ot.logs import configure_logs
    from ot.servers.spec import why_not_startable

    spec, redact = _spec(paths, name, entry, secrets, use_global)
    if why := why_not_startable(spec):
        return {"error": why}
    configure_logs("ERROR", redact)  # what goes wrong is told below
    echo(f"connecting to {name} ...", err=True)
    from ot.servers.connection import probe  # imports the protocol's library

    started = time.monotonic()
    try:
        found = run_async(probe(spec))
    except ServerUnavailable as error:
        return {"error": redact(str(error))}
    _remember(paths, spec, found)
    seconds = round(time.monotonic() - started, 1)
    # What the definitions would take in a model's context, one by one.
    tokens = sum(len(json.dumps(tool, ensure_ascii=False, default=str)) for tool in found.tools) // 4
    return {"tools": len(found.tools), "tokens": tokens, "seconds": seconds}


def _remember(paths: Paths, spec: ServerSpec, found: ServerDefinitions) -> None:
    """Keep what was listed: the next program finds the tools without waiting, and a later change is noticed."""
    from ot.servers.catalogue_files import FOLDER, CatalogueFiles
    from ot.servers.definition_pins import DefinitionPins
    from ot.servers.definitions import within_limits

    directory = paths.global_dir / FOLDER
    CatalogueFiles(directory).write(spec.identity, found)
    DefinitionPins(directory).observe(spec.identity, spec.pack, within_limits(found)[0])


def _spec(
    paths: Paths, name: str, entry: dict[str, Any], secrets: dict[str, str], use_global: bool
) -> tuple[ServerSpec, Callable[[str], str]]:
    """Return the server ready to be started, also where the project around it is not trusted."""
    from ot.config.load import load_config
    from ot.config.models import Server
    from ot.config.paths import FOLDER
    from ot.config.trust import Trust
    from ot.servers.spec import resolve_spec

    loaded = load_config(paths, Trust(paths.global_dir))
    side = "user" if use_global else "project"
    known = replace(loaded.secrets, **{side: {**getattr(loaded.secrets, side), **secrets}})
    server = Server.model_validate(entry)
    project = None if use_global else paths.cwd / FOLDER
    spec = resolve_spec(
        name,
        server,
        known,
        paths,
        project,
        secrets_files=loaded.secret_files,
        internal_hosts=loaded.config.security.internal_hosts,
    )
    return replace(spec, start_seconds=max(spec.start_seconds, FIRST_START_SECONDS)), known.redact


def _lines(told: dict[str, Any], edited: Edited, entry: dict[str, Any]) -> list[str]:
    from ot.config.models import pack_name

    name, pack = told["name"], entry.get("pack") or pack_name(told["name"])
    lines = [f"Added {name} to {edited.file}."]
    if told["secrets"]:
        lines.append(
            f"Secrets were put into {edited.secrets_file}, not into the configuration: {', '.join(told['secrets'])}."
        )
    if edited.trusted is False:
        lines.append("The project is not trusted and will not be used: run onetool trust.")
    if error := told.get("error"):
        return [*lines, f"But it cannot be used yet: {error}", f"Next: fix that, or onetool remove {name}"]
    if "tools" in told:
        cost = f"listed flat they would take about {told['tokens']:,} tokens (estimate)"
        lines.append(f"{counted(told['tools'], 'tool')} in {told['seconds']:g} s; {cost}.")
    return [*lines, f"Next: onetool run 'ot.help(\"{pack}\")'"]


# ---------------------------------------------------------------- what was typed


def name_and_arguments(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name that was given, or none, and the words of the command or the address."""
    import shlex

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
    from ot.config.clients.server_entry import own_name

    if _is_address(words[0]):
        return own_name(_of_host(urlsplit(words[0]).hostname or "server"))
    package = next((word for word in words[1:] if not word.startswith("-") and word not in SWITCHES), words[0])
    bare = re.split(r"(?<=.)[@=\[<>~]", PurePath(package).name if "/" in package else package)[0]
    return own_name(PACKAGE_EDGES.sub("", PACKAGE_EDGES.sub("", PurePath(bare).stem or bare)) or bare)


def entry_of_arguments(
    name: str, words: Sequence[str], env: Sequence[str], headers: Sequence[str], pack: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the server as it is written, and the secrets that were taken out of it."""
    from ot.config.clients.server_secrets import SecretsTaken

    taken = SecretsTaken(name)
    is_url = _is_address(words[0])
    start = {"url": taken.url(words[0])} if is_url else {"command": words[0], "args": taken.args(list(words[1:]))}
    more = {
        "env": taken.env(dict(_pair(text, "=", "--env NAME=VALUE") for text in env)),
        "headers": taken.headers(dict(_pair(text, ":=", "--header 'NAME: VALUE'") for text in headers)),
        "pack": pack,
    }
    return {key: value for key, value in {**start, **more}.items() if value}, taken.taken


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
