"""onetool add: one more MCP server, and what came with it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.adding import ServerToAdd
from ot.cli.exit_codes import BACKEND, FAILURE, NOT_FOUND, OK
from ot.cli.servers import list_left_out
from ot.cli.terminal import echo, echo_either, fail, pluralize
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.config.edit_config import Edited
    from ot.config.paths import Paths
    from ot.config.yaml_edit import YamlText
    from ot.proxied.spec import ServerSpec


def add(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            help="Optionally a name, then a command line, an address, npx:PACKAGE, uvx:PACKAGE, openapi:FILE, "
            "openapi:ADDRESS or preset:NAME.",
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", "-e", help="NAME=VALUE for its environment; NAME alone takes a secret or a variable."),
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", help="'NAME: VALUE', sent with every request.")
    ] = None,
    base: Annotated[
        str, typer.Option("--base", help="The address of an API, if its OpenAPI document does not say it.")
    ] = "",
    name: Annotated[
        str, typer.Option("--name", help="The server's name; by default a free one like its package.")
    ] = "",
    pack: Annotated[str, typer.Option("--pack", help="The pack's name, if it differs.")] = "",
    use_global: Annotated[bool, typer.Option("--global/--project", help="Write ~/.onetool/ or ./.onetool/.")] = True,
    connect: Annotated[
        bool, typer.Option("--connect/--no-connect", help="Whether to start it and list its tools.")
    ] = True,
    show_list: Annotated[bool, typer.Option("--list", help="Show the presets.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add an MCP server or an API whose tools become a pack; options go before the command."""
    from ot.cli.adding.presets import list_presets
    from ot.cli.adding.typed_words import entry_of_arguments, name_and_arguments
    from ot.config.clients.server_secrets import with_own_secrets
    from ot.config.edit_config import read_kept_secrets
    from ot.config.paths import Paths

    if show_list:
        list_presets(as_json)
        return
    given, line = name_and_arguments(words or ())
    paths = Paths.find()
    naming = _Naming(paths, name or given, pack)
    found = _resolve_server(naming, line, base, paths, use_global)
    name = found.name
    written, taken = entry_of_arguments(name, line, env or (), header or (), pack, found.entry)
    entry, secrets = with_own_secrets(name, written, taken, read_kept_secrets(paths, use_global=use_global))
    edited = _write(paths, name, entry, secrets, use_global)
    came = _ask_server(paths, name, entry, secrets, use_global) if connect and not found.login else {}
    told = {"name": name, "file": str(edited.file), "secrets": sorted(secrets), "trusted": edited.trusted, **came}
    told |= {"note": naming.note} if naming.note else {}
    echo_either(as_json, told, _lines(told, edited, entry, found))
    raise typer.Exit(BACKEND if came.get("error") else OK)


def _resolve_server(naming: _Naming, line: list[str], base: str, paths: Paths, use_global: bool) -> ServerToAdd:
    """Return the server to add, under the given name or a guessed one."""
    from ot.cli.adding.described_api import read_api
    from ot.cli.adding.presets import preset_server
    from ot.cli.adding.typed_words import guess_name, source_of, start_of_words

    kind, rest = source_of(line)
    if base and kind != "openapi":
        raise typer.BadParameter("--base is for openapi:FILE and openapi:ADDRESS alone")
    try:
        if kind == "openapi":
            return read_api(naming.choose_name, rest, base, paths, use_global=use_global)
        if kind == "preset":
            return preset_server(rest, naming.choose_name(rest))
    except ValueError as error:
        fail(f"nothing was added: {error}", NOT_FOUND if kind == "preset" else FAILURE)
    return ServerToAdd(naming.choose_name(guess_name(line)), start_of_words(line))


class _Naming:
    """Finds a free name where none was given, and says what there is to say about the name."""

    def __init__(self, paths: Paths, given: str, pack: str) -> None:
        from ot.build import names_in_use
        from ot.config.clients.server_entry import why_taken
        from ot.config.setting_types import pack_name

        self._packs = names_in_use(paths.global_dir)
        self._given = given
        self._pack = pack or pack_name(given)
        why = why_taken(self._pack, self._packs)
        self.note = f"In programs, {self._pack} means this server from now on, and not {why}." if why else ""

    def choose_name(self, guessed: str) -> str:
        """Return the name that was given, or one like *guessed* that hides nothing."""
        from ot.config.clients.server_entry import free_name, why_taken

        if not self._pack and (why := why_taken(guessed, self._packs)):
            free = free_name(guessed, self._packs)
            self.note = f"It is called {free}, because {guessed} is {why} already; choose another name with --name."
            return free
        return self._given or guessed


def _write(paths: Paths, name: str, entry: dict[str, Any], secrets: dict[str, str], use_global: bool) -> Edited:
    from ot.config.edit_config import edit_config
    from ot.errors import ConfigError

    def change(text: YamlText) -> YamlText:
        if name in (text.get("servers") or {}):
            hint = f"onetool remove {name}, or give another name"
            raise ConfigError(f"there is already a server '{name}'", file=text.file, hint=hint)
        return text.put(("servers", name), entry)

    return edit_config(paths, change, use_global=use_global, secrets=secrets)


def _ask_server(
    paths: Paths, name: str, entry: dict[str, Any], secrets: dict[str, str], use_global: bool
) -> dict[str, Any]:
    """Return the server's tools, or why it could not be asked."""
    from ot.cli.diagnosis.starts import list_tools, with_patience
    from ot.cli.terminal.event_loop import run_async
    from ot.errors import ServerUnavailable
    from ot.logs import configure_logs
    from ot.proxied.spec import why_not_startable

    spec, redact = _spec(paths, name, entry, secrets, use_global)
    if why := why_not_startable(spec):
        return {"error": why}
    configure_logs("ERROR", redact)  # what goes wrong is told below
    echo(f"connecting to {name} ...", err=True)
    started = time.monotonic()
    try:
        found = run_async(list_tools(paths, with_patience(spec)))
    except ServerUnavailable as error:
        return {"error": redact(str(error))}
    seconds = round(time.monotonic() - started, 1)
    # What the definitions would take in a model's context, one by one.
    tokens = sum(len(json.dumps(tool, ensure_ascii=False, default=str)) for tool in found.tools) // 4
    left_out = {"left_out": dict(found.left_out)} if found.left_out else {}
    return {"tools": len(found.tools), "tokens": tokens, "seconds": seconds, **left_out}


def _spec(
    paths: Paths, name: str, entry: dict[str, Any], secrets: dict[str, str], use_global: bool
) -> tuple[ServerSpec, Callable[[str], str]]:
    """Return the server ready to be started, also where the project around it is not trusted."""
    from ot.config.load import load_config
    from ot.config.models import Server
    from ot.config.paths import FOLDER
    from ot.proxied.spec import resolve_spec

    loaded = load_config(paths)
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
    return spec, known.redact


def _lines(told: dict[str, Any], edited: Edited, entry: dict[str, Any], found: ServerToAdd) -> list[str]:
    from ot.config.setting_types import pack_name

    name, pack = told["name"], entry.get("pack") or pack_name(told["name"])
    lines = [f"Added {name} to {edited.file}.", *filter(None, [told.get("note")])]
    if told["secrets"]:
        lines.append(
            f"Secrets were put into {edited.secrets_file}, not into the configuration: {', '.join(told['secrets'])}."
        )
    if edited.trusted is False:
        lines.append("The project is not trusted and will not be used: run onetool trust.")
    # A header that was given is an answer to what the server wants.
    lines += found.advice[:1] if entry.get("openapi") and entry.get("headers") else found.advice
    if found.login:
        return [*lines, f"Next: onetool auth login {name}"]
    if error := told.get("error"):
        return [*lines, f"But it cannot be used yet: {error}", f"Next: fix that, or onetool remove {name}"]
    if "tools" in told:
        cost = f"listed flat they would take about {told['tokens']:,} tokens (estimate)"
        lines.append(f"{pluralize(told['tools'], 'tool')} in {told['seconds']:g} s; {cost}.")
        lines += list_left_out(told.get("left_out", {}))
    return [*lines, f"Next: onetool run 'ot.help(\"{pack}\")'"]
