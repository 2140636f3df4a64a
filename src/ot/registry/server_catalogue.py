"""ServerCatalogue: what proxied servers offered when last asked, on disk: none need run to be listed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ot.registry.definition_limits import within_limits
from ot.registry.server_definitions import ServerDefinitions
from ot.registry.server_files import read_or_forget, server_file, write_json
from ot.registry.server_identity import ServerIdentity

logger = logging.getLogger(__name__)

VERSION = 1


class ServerCatalogue:
    """The definitions of each server, one file each, wherever it is used from."""

    def __init__(self, directory: Path) -> None:
        """Keep the files in *directory*."""
        self._directory = directory

    def read(self, identity: ServerIdentity) -> ServerDefinitions | None:
        """Return what the server offered, or nothing when it was never asked."""
        path = self._file(identity)
        found = read_or_forget(path) or self._taken_over(identity)
        if not found or found.get("version") != VERSION:
            return None
        try:
            return _definitions(found["definitions"])
        except (KeyError, TypeError, ValueError):
            logger.warning("%s is damaged and is not used", path)
            return None

    def write(self, identity: ServerIdentity, definitions: ServerDefinitions) -> None:
        """Remember what the server offers; tools over the limits are left out."""
        try:
            usable, _ = within_limits(definitions)
            content = {"version": VERSION, "server": identity.server, "definitions": vars(usable)}
            write_json(self._file(identity), content)
        except (OSError, TypeError, ValueError) as error:
            logger.warning("the definitions of %s could not be remembered: %s", identity.server, error)

    def _taken_over(self, identity: ServerIdentity) -> dict[str, Any]:
        """Return what an older version kept of the server for this directory, from now on under its identity."""
        old, new = server_file(self._directory, identity.server, "tools", identity.former), self._file(identity)
        try:
            old.replace(new)
        except OSError:
            return {}
        return read_or_forget(new)

    def _file(self, identity: ServerIdentity) -> Path:
        return server_file(self._directory, identity.server, "tools", identity.written)


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
