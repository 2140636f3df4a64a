"""onetool add: one more MCP server, and what came with it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from ot.cli.terminal import echo

if TYPE_CHECKING:
    from ot.config.edit_config import Edited
    from ot.config.paths import Paths
    from ot.config.yaml_edit import YamlText
    from ot.execution.servers.server_spec import ServerSpec
    from ot.registry.server_definitions import ServerDefinitions

FIRST_START_SECONDS = 120.0
"""Its package may have to be fetched first."""


class LookAt(Protocol):
    """Connects to a server once and brings back what it offers."""

    async def __call__(self, spec: ServerSpec) -> ServerDefinitions:
        """Return what the server offers, or raise ServerUnavailable."""
        ...


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    settings = {"allow_interspersed_args": False, "ignore_unknown_options": False}
    app.command(
        "add",
        short_help="Add an MCP server whose tools become a pack.",
        epilog="Example: onetool add clock uvx mcp-server-time",
        context_settings=settings,
    )(add)


def add(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND",
            help="A name perhaps, then a command line, an address, npx:PACKAGE or uvx:PACKAGE.",
        ),
    ],
    env: Annotated[
        list[str] | None,
        typer.Option("--env", "-e", help="NAME=VALUE for its environment; NAME alone takes a secret or a variable."),
    ] = None,
    header: Annotated[list[str] | None, typer.Option("--header", help="'NAME: VALUE' of every request.")] = None,
    pack: Annotated[str, typer.Option("--pack", help="The pack's name, if it should be another.")] = "",
    use_global: Annotated[bool, typer.Option("--global/--project", help="Write ~/.onetool/ or ./.onetool/.")] = True,
    connect: Annotated[bool, typer.Option("--connect/--no-connect", help="Whether to start it and look.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Add an MCP server whose tools become a pack; options stand before the command."""
    from ot.cli.server_words import entry_of_words, guessed_name, name_and_words
    from ot.config.clients.own_secrets import with_own_secrets
    from ot.config.edit_config import kept_secrets
    from ot.config.paths import Paths

    given, line = name_and_words(words)
    name = given or guessed_name(line)
    paths = Paths.find()
    written, taken = entry_of_words(name, line, env or (), header or (), pack)
    entry, secrets = with_own_secrets(name, written, taken, kept_secrets(paths, use_global=use_global))
    edited = _write(paths, name, entry, secrets, use_global)
    came = _looked(paths, name, entry, secrets, use_global) if connect else {}
    told = {"name": name, "file": str(edited.file), "secrets": sorted(secrets), "trusted": edited.trusted, **came}
    echo(json.dumps(told) if as_json else "\n".join(_lines(told, edited, entry)))
    raise typer.Exit(5 if came.get("error") else 0)


def _write(paths: Paths, name: str, entry: dict[str, Any], secrets: dict[str, str], use_global: bool) -> Edited:
    from ot.config.edit_config import edit_config
    from ot.errors import ConfigError

    def change(text: YamlText) -> YamlText:
        if name in (text.get("servers") or {}):
            raise ConfigError(
                f"there is a server '{name}' already",
                file=text.file,
                hint=f"onetool remove {name}, or give another name",
            )
        return text.put(("servers", name), entry)

    return edit_config(paths, change, use_global=use_global, secrets=secrets)


def _looked(
    paths: Paths,
    name: str,
    entry: dict[str, Any],
    secrets: dict[str, str],
    use_global: bool,
    look: LookAt | None = None,
) -> dict[str, Any]:
    """Return what the server brought, or why it could not be asked."""
    from ot.cli.event_loop import run_async
    from ot.errors import ServerUnavailable
    from ot.execution.servers.look_at import look_at
    from ot.execution.servers.spec_of_server import why_not_startable
    from ot.logs import configure_logs

    spec, redact = _spec(paths, name, entry, secrets, use_global)
    if why := why_not_startable(spec):
        return {"error": why}
    configure_logs("ERROR", redact)  # what goes wrong is told below
    echo(f"connecting to {name} ...", err=True)
    started = time.monotonic()
    try:
        found = run_async((look or look_at)(spec))
    except ServerUnavailable as error:
        return {"error": redact(str(error))}
    _remember(paths, spec, found)
    return {
        "tools": len(found.tools),
        "tokens": flat_tokens(found.tools),
        "seconds": round(time.monotonic() - started, 1),
    }


def _remember(paths: Paths, spec: ServerSpec, found: ServerDefinitions) -> None:
    """Keep what was listed: the next program finds the tools without waiting, and a later change is noticed."""
    from ot.registry.definition_limits import within_limits
    from ot.registry.definition_pins import DefinitionPins
    from ot.registry.server_catalogue import ServerCatalogue
    from ot.registry.server_files import FOLDER

    directory = paths.global_dir / FOLDER
    ServerCatalogue(directory).write(spec.identity, found)
    DefinitionPins(directory).observe(spec.identity, spec.pack, within_limits(found)[0])


def _spec(paths: Paths, name: str, entry: dict[str, Any], secrets: dict[str, str], use_global: bool) -> Any:
    """Return the server ready to be started, also where the project around it is not trusted."""
    from ot.config.load import load_config
    from ot.config.models import Server
    from ot.config.paths import FOLDER
    from ot.config.trust import Trust
    from ot.execution.servers.spec_of_server import spec_of_server

    loaded = load_config(paths, Trust(paths.global_dir))
    known = loaded.secrets
    known = replace(
        known, **({"user": {**known.user, **secrets}} if use_global else {"project": {**known.project, **secrets}})
    )
    server = Server.model_validate(entry)
    project = None if use_global else paths.cwd / FOLDER
    spec = spec_of_server(name, server, known, paths, project, secrets_files=loaded.secret_files)
    return replace(spec, start_seconds=max(spec.start_seconds, FIRST_START_SECONDS)), known.redact


def flat_tokens(tools: Sequence[Any]) -> int:
    """Return about how many tokens the tools' definitions would take in a model's context, one by one."""
    return sum(len(json.dumps(tool, ensure_ascii=False, default=str)) for tool in tools) // 4


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
        return [*lines, f"But it cannot be used yet: {error}", f"Next: put that right, or onetool remove {name}"]
    if "tools" in told:
        cost = f"listed flat they would take about {told['tokens']:,} tokens (estimate)"
        tools = "1 tool" if told["tools"] == 1 else f"{told['tools']} tools"
        lines.append(f"{tools} in {told['seconds']:g} s; {cost}.")
    return [*lines, f"Next: onetool run 'ot.help(\"{pack}\")'"]
