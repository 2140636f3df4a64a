"""What is known of proxied servers, as private JSON files in the user's directory: none need run to be listed."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ot.files.private_file import read_regular, write_private
from ot.proxied.definitions import ServerDefinitions, within_limits
from ot.registry.proxy_target import ServerIdentity

logger = logging.getLogger(__name__)

VERSION = 1
FOLDER = "servers"
MAX_BYTES = 64 << 20


def server_file(directory: Path, server: str, kind: str, *more: str) -> Path:
    """Return the file of that kind for *server*; what else tells it apart goes into its name as a hash."""
    # Two servers whose names differ in what a file's name cannot hold must not share a file.
    hashed = hashlib.sha256("\0".join((server, *more)).encode()).hexdigest()[:12]
    return directory / f"{re.sub(r'[^A-Za-z0-9_-]', '_', server)[:60]}-{hashed}.{kind}.json"


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the file's content, or nothing if there is no file.

    Raises:
        ValueError: It cannot be used; the text says why.
    """
    try:
        found = read_regular(path, MAX_BYTES, follow=False)
        if found.writable_by_others:
            raise ValueError("it is writable by other users: run 'chmod go-w' on it")
        value = json.loads(found.data)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from None
    if not isinstance(value, dict):
        raise ValueError("it holds no object")
    return cast("dict[str, Any]", value)


def read_or_forget(path: Path) -> dict[str, Any]:
    """Return the file's content; an unusable file is ignored with a warning, and rewritten later."""
    try:
        return read_json(path) or {}
    except ValueError as error:
        logger.warning("%s is not used: %s", path, error)
        return {}


def write_json(path: Path, value: Any) -> None:
    """Put *value* into the file, for its owner's eyes alone.

    Raises:
        OSError: It cannot be written.
        ValueError: It could not be read again.
    """
    # The standard library's: whole numbers of any size come back as they were, and so does every hash of them.
    text = json.dumps(value)
    if len(text) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES >> 20} MiB")
    write_private(path, text)


class CatalogueFiles:
    """The definitions of each server, one file each, wherever it is used from."""

    def __init__(self, directory: Path) -> None:
        """Keep the files in *directory*."""
        self._directory = directory

    def read(self, identity: ServerIdentity) -> ServerDefinitions | None:
        """Return the server's definitions, or nothing if it was never asked."""
        path = self._file(identity)
        found = read_or_forget(path) or self._take_over(identity) or self._common(identity)
        if not found or found.get("version") != VERSION:
            return None
        try:
            return _definitions(found["definitions"])
        except (KeyError, TypeError, ValueError):
            logger.warning("%s is damaged and is not used", path)
            return None

    def holds(self, identity: ServerIdentity) -> bool:
        """Return whether there is a file for the server; what it is worth shows when it is read."""
        common = server_file(self._directory, identity.server, "tools", identity.common)
        return self._file(identity).exists() or (bool(identity.common) and common.exists())

    def write(self, identity: ServerIdentity, definitions: ServerDefinitions) -> None:
        """Remember what the server offers; tools over the limits are left out."""
        try:
            offered = vars(within_limits(definitions))
            usable = {key: value for key, value in offered.items() if key != "left_out" or value}
            content = {"version": VERSION, "server": identity.server, "definitions": usable}
            write_json(self._file(identity), content)
        except (OSError, TypeError, ValueError) as error:
            logger.warning("the definitions of %s could not be remembered: %s", identity.server, error)

    def _common(self, identity: ServerIdentity) -> dict[str, Any]:
        """Return the definitions of the same server of this process's user."""
        common = server_file(self._directory, identity.server, "tools", identity.common)
        return read_or_forget(common) if identity.common else {}

    def _take_over(self, identity: ServerIdentity) -> dict[str, Any]:
        """Return what an older version kept of the server for this directory, moved to its identity."""
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
        left_out=dict(plain.get("left_out", {})),
    )


def _mappings(value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not all(isinstance(part, dict) for part in cast("Sequence[Any]", value)):
        raise ValueError("not a list of objects")
    return tuple(cast("Sequence[Mapping[str, Any]]", value))
