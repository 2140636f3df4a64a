"""onetool servers, remove, enable and disable: the MCP servers in the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import NOT_FOUND
from ot.cli.terminal import NOT_TRUSTED, columns, echo, echo_either, fail, pluralize
from ot.cli.terminal.completion import complete_servers
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ot.config.edit_config import Edited
    from ot.config.load import Loaded
    from ot.config.paths import Paths
    from ot.config.yaml_edit import YamlText
    from ot.proxied.auth.login_state import LoginState

LOGIN_NEEDED = "login needed"
MAX_LEFT_OUT = 10
"""Tools that cannot be used, named one by one."""


Name = Annotated[
    str, typer.Argument(help="The server's name, as onetool servers shows it.", autocompletion=complete_servers)
]


def servers(as_json: AsJson = False) -> None:
    """List the MCP servers, whether each can be started, and how their logins are."""
    from ot.config.load import load_config
    from ot.config.paths import Paths

    paths = Paths.find()
    loaded = load_config(paths)
    rows = server_rows(loaded, paths)
    echo_either(as_json, rows, server_lines(rows))
    if as_json:
        return
    for warning in (*loaded.warnings, *_list_hidden_packs(rows)):
        echo(f"warning: {warning}", err=True)
    for name, directory in loaded.elsewhere.items():
        echo(f"{name} is not used here: only in {directory}", err=True)
    if not rows:
        echo("There are no servers. Next: onetool init --from all, or onetool add", err=True)


def _list_hidden_packs(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    from ot.build import bundled_names
    from ot.registry.tool_registry import describe_hidden_pack

    bundled = bundled_names() if rows else ()
    return [describe_hidden_pack(row["name"], row["pack"]) for row in rows if row["enabled"] and row["pack"] in bundled]


def server_rows(loaded: Loaded, paths: Paths) -> list[dict[str, Any]]:
    """Return what is known about each server without starting it."""
    from ot.config.setting_types import pack_name
    from ot.proxied.auth.login_state import login_states
    from ot.proxied.catalogue_files import FOLDER, CatalogueFiles
    from ot.proxied.spec import resolve_specs, why_not_startable

    specs = resolve_specs(loaded, paths)
    catalogue = CatalogueFiles(paths.global_dir / FOLDER)
    logins = login_states({name: spec.account for name, spec in specs.items()})

    known = {name: found for name, spec in specs.items() if (found := catalogue.read(spec.identity))}
    return [
        {
            "name": name,
            "pack": server.pack or pack_name(name),
            "transport": "openapi" if server.openapi else "http" if server.url else "stdio",
            "endpoint": loaded.secrets.redact(
                " ".join(server.urls) or server.url or " ".join([server.command, *server.args])
            ),
            "from": "project" if name in loaded.servers_of_project else "user",
            "enabled": server.enabled,
            "tools": len(known[name].tools) if name in known else None,
            "left_out": dict(known[name].left_out) if name in known else {},
            "problem": why_not_startable(specs[name]) if name in specs else "",
            "login": login_row(logins.get(name)),
        }
        for name, server in loaded.config.servers.items()
    ]


def login_row(login: LoginState | None) -> dict[str, Any] | None:
    """Return a login's state as JSON data; nothing for a server without one."""
    if login is None:
        return None
    told = {"state": login.state, "why": login.why, "scope": login.scope, "expires_at": login.expires_at}
    return {**told, "renews": login.renews, "until": login.until}


def login_words(server: str, login: Mapping[str, Any]) -> str:
    """Return a login's state in words, with the login command if one is needed."""
    if login["state"] == LOGIN_NEEDED:
        return f"login needed: onetool auth login {server} ({login['why']})"
    return ", ".join(filter(None, [login["state"], login["until"]]))


def server_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return *rows* as lines for a person, in columns."""
    table = [(row["name"], _state(row), row["from"], row["transport"], _tools(row), row["endpoint"]) for row in rows]
    lines: list[str] = []
    for line, row in zip(columns(table), rows, strict=True):
        lines += [line, *(f"  {problem}" for problem in row["problem"].split("; ") if problem)]
        lines += [f"  {login_words(row['name'], row['login'])}"] if row["login"] and row["enabled"] else []
        lines += [f"  {text}" for text in list_left_out(row["left_out"])]
    return lines


def list_left_out(left_out: Mapping[str, str]) -> list[str]:
    """List the tools of a server that cannot be used, one per line."""
    shown = [f"{name} is left out: {why}" for name, why in list(left_out.items())[:MAX_LEFT_OUT]]
    more = len(left_out) - len(shown)
    return [*shown, f"and {more:,} more: onetool servers --json"] if more else shown


def _state(row: dict[str, Any]) -> str:
    if not row["enabled"] or row["problem"]:
        return "cannot start" if row["enabled"] else "disabled"
    return LOGIN_NEEDED if row["login"] and row["login"]["state"] == LOGIN_NEEDED else "enabled"


def _tools(row: dict[str, Any]) -> str:
    """Return how many tools it has, if it has been asked."""
    return "not asked yet" if row["tools"] is None else pluralize(row["tools"], "tool")


def remove(name: Name, as_json: AsJson = False) -> None:
    """Remove a server from the configuration."""
    _edit(name, "removed", lambda text: text.remove(("servers", name)), as_json)


def enable(name: Name, as_json: AsJson = False) -> None:
    """Use a disabled server again."""
    _edit(name, "enabled", lambda text: _set_enabled(text, name, True), as_json)


def disable(name: Name, as_json: AsJson = False) -> None:
    """Stop using a server, but keep it in the configuration."""
    _edit(name, "disabled", lambda text: _set_enabled(text, name, False), as_json)


def _set_enabled(text: YamlText, name: str, value: bool) -> YamlText:
    given = text.get("servers", name, "enabled")
    # What the user never wrote needs no line that says the default.
    return text if (given is None and value) or given is value else text.put(("servers", name, "enabled"), value)


def _edit(name: str, done: str, change: Callable[[YamlText], YamlText], as_json: bool) -> None:
    from ot.config.edit_config import edit_config
    from ot.config.paths import Paths

    paths = Paths.find()
    edited = edit_config(paths, change, use_global=_is_global(paths, name))
    already = "" if edited.changed else " already"
    said = f"{name} is {done}{already} in" if done != "removed" else f"Removed {name} from"
    told = {done: name, "file": str(edited.file), "changed": edited.changed, "trusted": edited.trusted}
    echo_either(as_json, told, [f"{said} {edited.file}.", *([NOT_TRUSTED] if edited.trusted is False else [])])


def put_into_config(paths: Paths, name: str, key: str, value: Any) -> Edited:
    """Set *key* of the server *name* in the file that it is in."""
    from ot.config.edit_config import edit_config

    return edit_config(paths, lambda text: text.put(("servers", name, key), value), use_global=_is_global(paths, name))


def _is_global(paths: Paths, name: str) -> bool:
    """Say in which file the server is; a trusted project's goes first, as it does when a server is used."""
    from ot.config.edit_config import config_text
    from ot.config.layer import Directory
    from ot.config.trust import Trust
    from ot.nearest_names import listing

    places = [(False, paths.project_dir), (True, paths.global_dir)]
    if paths.project_dir and Trust(paths.global_dir).state(paths.project_dir).state != "trusted":
        places.reverse()  # a name in a repository must not turn the user's command away from the user's server
    known: list[str] = []
    for use_global, directory in places:
        files = Directory(directory, None if use_global else directory) if directory else None
        names: list[str] = list((config_text(files).get("servers") if files else None) or {})
        if name in names:
            return use_global
        known += names
    fail(f"there is no server '{name}'." + (f" Servers: {listing(name, known)}" if known else ""), NOT_FOUND)
