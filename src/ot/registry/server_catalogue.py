"""ServerCatalogue: what proxied servers offered when last asked, on disk: none need run to be listed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ot.registry.definition_limits import within_limits
from ot.registry.server_definitions import ServerDefinitions
from ot.registry.server_files import read_or_forget, server_file, write_json

logger = logging.getLogger(__name__)

VERSION = 1


class ServerCatalogue:
    """The definitions of each server at each address, one file each."""

    def __init__(self, directory: Path) -> None:
        """Keep the files in *directory*."""
        self._directory = directory

    def read(self, server: str, endpoint: str) -> ServerDefinitions | None:
        """Return what the server offered at that address, or nothing when it was never asked."""
        path = server_file(self._directory, server, "tools", endpoint)
        found = read_or_forget(path)
        if not found or found.get("version") != VERSION:
            return None
        try:
            return _definitions(found["definitions"])
        except (KeyError, TypeError, ValueError):
            logger.warning("%s is damaged and is not used", path)
            return None

    def write(self, server: str, endpoint: str, definitions: ServerDefinitions) -> None:
        """Remember what the server offers; tools over the limits are left out."""
        path = server_file(self._directory, server, "tools", endpoint)
        try:
            usable, _ = within_limits(definitions)
            write_json(path, {"version": VERSION, "server": server, "definitions": vars(usable)})
        except (OSError, TypeError, ValueError) as error:
            logger.warning("the definitions of %s could not be remembered: %s", server, error)

    def forget(self, server: str, endpoint: str) -> None:
        """Remove what is remembered of the server at that address."""
        server_file(self._directory, server, "tools", endpoint).unlink(missing_ok=True)


def _definitions(plain: Mapping[str, Any]) -> ServerDefinitions:
    return ServerDefinitions(
        tools=_mappings(plain["tools"]),
        prompts=_mappings(plain["prompts"]),
        has_resources=bool(plain["has_resources"]),
        instructions=str(plain["instructions"]),
        server_info=dict(plain["server_info"]),
        listed_at=float(plain["listed_at"]),
    )


def _mappings(value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not all(isinstance(part, dict) for part in cast("Sequence[Any]", value)):
        raise ValueError("not a list of objects")
    return tuple(cast("Sequence[Mapping[str, Any]]", value))
