"""Which servers of a client OneTool has too, so that the client can do without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ot.config.clients.client_file import ServerList
from ot.config.clients.client_reading import found_server
from ot.config.clients.known_clients import Client
from ot.config.clients.server_entry import Surroundings, is_onetool, table
from ot.config.clients.server_secrets import with_own_secrets
from ot.config.edit_config import config_text, files_of, kept_secrets
from ot.config.paths import Paths

SAME = ("command", "args", "env", "cwd", "url", "headers")


def held_servers(client: Client, listed: ServerList, around: Surroundings, paths: Paths) -> dict[str, str]:
    """Return the servers in a client's own list that the user's configuration has too, with their names in it.

    They are the same only when they would be started, or addressed, in the same way.

    Raises:
        ConfigError: The user's configuration cannot be read.
    """
    own = table(config_text(files_of(paths, use_global=True)).get("servers"))
    secrets = kept_secrets(paths, use_global=True)
    return {
        name: held
        for name, given in listed.servers.items()
        if (held := _held_as(client, name, given, around, own, secrets))
    }


def _held_as(
    client: Client, name: str, given: Any, around: Surroundings, own: Mapping[str, Any], secrets: Mapping[str, str]
) -> str:
    if is_onetool(client.adapted(table(given))):
        return ""
    found = found_server(client, name, given, client.own_file(around), around)
    if found.skipped or found.entry.get("enabled") is False:
        return ""
    entry, _ = with_own_secrets(found.name, found.entry, found.secrets, secrets)
    for held in (found.name, f"{found.name}-{client.name}"):
        settings = table(own.get(held))
        if settings.get("enabled") is not False and all(settings.get(key) == entry.get(key) for key in SAME):
            return held
    return ""
