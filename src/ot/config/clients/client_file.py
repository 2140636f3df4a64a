"""A client's file as it is on disk: read once, understood or refused with its line, written whole or not at all."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from ot.config.clients.json_text import JsonText
from ot.config.clients.known_clients import Client
from ot.config.clients.server_entry import Surroundings, table
from ot.config.clients.toml_text import TomlText
from ot.errors import ConfigError
from ot.files.private_file import read_regular, write_private

MAX_BYTES = 16 << 20
NEW_MODE = 0o600


@dataclass(frozen=True, slots=True)
class FileOnDisk:
    """The bytes of a file, or none where there is none; ``path`` may be a link, ``real`` is where it leads."""

    path: Path
    real: Path
    data: bytes | None = field(repr=False)
    mode: int = NEW_MODE

    @property
    def text(self) -> str:
        """Its text, empty when there is no file; raises ConfigError if it is not UTF-8."""
        try:
            return (self.data or b"").decode()
        except UnicodeDecodeError as error:
            line = (self.data or b"")[: error.start].count(b"\n") + 1
            raise ConfigError("it is not UTF-8", file=self.path, line=line, hint="nothing was changed") from None

    def write(self, data: bytes | None) -> None:
        """Put *data* in its place, or remove it; a link stays one, and so do its permissions.

        Raises:
            ConfigError: It has changed meanwhile, or cannot be written; then nothing was changed.
        """
        if read_from_disk(self.path).data != self.data:
            raise ConfigError("it has just changed, perhaps by the client", file=self.path, hint="try again")
        try:
            if data is None:
                self.real.unlink(missing_ok=True)
            else:
                write_private(self.real, data.decode(), self.mode)
        except OSError as error:
            raise ConfigError(f"it cannot be written: {error.strerror or error}", file=self.real) from None


def read_from_disk(path: Path) -> FileOnDisk:
    """Return the file at *path*.

    Raises:
        ConfigError: It cannot be read, or it belongs to somebody else.
    """
    real = Path(os.path.realpath(path))
    try:
        found = read_regular(real, MAX_BYTES, follow=False)
    except (FileNotFoundError, NotADirectoryError):
        return FileOnDisk(path, real, None)
    except OSError as error:
        raise ConfigError(f"it cannot be read: {error.strerror or error}", file=path) from None
    if len(found.data) > MAX_BYTES:
        raise ConfigError(f"it is larger than {MAX_BYTES >> 20} MiB", file=path)
    if sys.platform != "win32" and found.owner != os.getuid():
        raise ConfigError("it belongs to another user", file=path, hint="nothing was changed")
    return FileOnDisk(path, real, found.data, found.mode)


# ---------------------------------------------------------------- its text, in either format

type ClientText = JsonText | TomlText


@dataclass(frozen=True, slots=True)
class ServerList:
    """The list of servers in a client's file, and the text around it."""

    path: Path
    key: str
    text: ClientText
    above: tuple[str, ...] = ()
    """The keys that lead to the list, where it is not at the top."""

    def below(self, *above: str) -> ServerList:
        """Return the list that the same file has below the keys *above*, with which it changes."""
        return ServerList(self.path, self.key, self.text, above)

    @property
    def servers(self) -> dict[str, Any]:
        """The servers' entries by name.

        Raises:
            ConfigError: The list is something else.
        """
        data = self.text.data
        for step in self.above:
            data = table(data.get(step))
        found = data.get(self.key, {})
        if not isinstance(found, dict):
            raise self._refusal(f"'{self.key}' is not a list of servers by name", ())
        return found  # pyright: ignore[reportUnknownVariableType] - keys of JSON and TOML are texts

    def put(self, *path: str, value: Any, before: str = "") -> ServerList:
        """Return the list with *value* at *path*, the name of a server first; a new one goes *before* another.

        Raises:
            ConfigError: The file is written in a way that leaves no place for it.
        """
        try:
            return replace(self, text=self.text.put((*self.above, self.key, *path), value, before))
        except ValueError as error:
            raise self._refusal(str(error), path) from None

    def remove(self, name: str) -> ServerList:
        """Return the list without the server *name*.

        Raises:
            ConfigError: The file is written in a way that does not allow it.
        """
        try:
            return replace(self, text=self.text.remove((*self.above, self.key, name)))
        except ValueError as error:
            raise self._refusal(str(error), (name,)) from None

    @property
    def encoded(self) -> bytes:
        """The whole file."""
        return self.text.text.encode()

    @property
    def has_list(self) -> bool:
        """Whether the file has a list of servers at all."""
        return self.key in self.text.data

    def without_list(self) -> ServerList:
        """Return the file without its list of servers."""
        return replace(self, text=self.text.remove((self.key,)))

    def _refusal(self, why: str, path: Sequence[str]) -> ConfigError:
        line = self.text.line_of((*self.above, self.key, *path))
        return ConfigError(why, file=self.path, line=line, hint="nothing was changed; --print shows what to write")


def private_list(client: Client, listed: ServerList, around: Surroundings) -> ServerList | None:
    """Return the servers of the working directory alone that the same file lists, if the client has such lists."""
    return listed.below(client.projects, str(around.cwd)) if client.projects else None


def server_list(client: Client, file: FileOnDisk, around: Surroundings) -> ServerList:
    """Return the servers in *file*, the own file of *client*.

    Raises:
        ConfigError: It is malformed; the error names the line.
    """
    kind = TomlText if file.path.suffix == ".toml" else JsonText
    try:
        return ServerList(file.path, client.own_file(around).key, kind(file.text))
    except RecursionError:
        raise ConfigError("it is nested too deeply", file=file.path) from None
    except ValueError as error:
        line = error.lineno if isinstance(error, JSONDecodeError) else _line_of(str(error))
        why = error.msg if isinstance(error, JSONDecodeError) else re.sub(r" \(at line.*", "", str(error))
        raise ConfigError(f"it is malformed: {why}", file=file.path, line=line, hint="nothing was changed") from None


def _line_of(message: str) -> int | None:
    found = re.search(r"at line (\d+)", message)
    return int(found[1]) if found else None
