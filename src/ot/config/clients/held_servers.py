"""Which servers of a client OneTool has too, so that the client can do without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ot.config.clients.client_file import ServerList
from ot.config.clients.client_reading import private_place, read_server
from ot.config.clients.known_clients import Client
from ot.config.clients.server_entry import Surroundings, is_onetool, name_of_same, table
from ot.config.edit_config import config_text, files_of, read_kept_secrets
from ot.config.paths import Paths


@dataclass(frozen=True, slots=True)
class HeldServers:
    """The servers in a list of a client that OneTool has too, with their names there, and why it lacks the others."""

    here: Mapping[str, str] = field(default_factory=dict[str, str])
    lacking: Mapping[str, str] = field(default_factory=dict[str, str])


def find_held_servers(
    client: Client, listed: ServerList, around: Surroundings, paths: Paths, *, private: bool = False
) -> HeldServers:
    """Return the servers in a client's own list that the user's configuration has too.

    They are the same only when they would be started, or addressed, in the same way. A *private* list is that of the
    working directory alone.

    Raises:
        ConfigError: The user's configuration cannot be read.
    """
    servers = table(config_text(files_of(paths, use_global=True)).get("servers"))
    secrets, place = read_kept_secrets(paths, use_global=True), client.own_file(around)
    place = private_place(place, around) if private else place
    here: dict[str, str] = {}
    lacking: dict[str, str] = {}
    for name, given in listed.servers.items():
        if is_onetool(client.adapted(table(given))):
            continue
        found = read_server(client, name, given, place, around)
        same = "" if found.skipped else name_of_same(found, servers, secrets)
        if found.skipped:
            lacking[name] = found.skipped
        elif not same:
            lacking[name] = f"OneTool does not have it (onetool init --from {client.name})"
        elif found.entry.get("enabled") is False or table(servers[same]).get("enabled") is False:
            lacking[name] = "it is disabled"
        else:
            here[name] = same
    return HeldServers(here, lacking)
