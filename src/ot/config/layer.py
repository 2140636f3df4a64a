"""One configuration file with all that it includes, as one layer of settings."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ot.config.document import MAX_BYTES, Node, Place, parse
from ot.config.merge import merge
from ot.config.paths import CONFIG_FILE, PROMPTS_FILE
from ot.config.problems import check_file
from ot.config.safe_file import read_regular
from ot.config.topics import placed_topics
from ot.errors import ConfigError

MAX_FILES = 100


class Files(Protocol):
    """Where the files of one layer come from."""

    @property
    def root(self) -> Path:
        """The .onetool directory."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return a file's bytes by its path below the root, or nothing where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory as it is now: the user's own, whose links are the user's choice, or a project's, without any."""

    root: Path
    below: Path | None = None

    def read(self, name: str) -> bytes | None:
        """Return a file's bytes, or nothing where there is none."""
        path = self.root / name
        try:
            return read_regular(path, MAX_BYTES, follow=True, below=self.below).data
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise ConfigError(f"the file cannot be read: {why}", file=path) from None


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings with their places, and the files that they were read from."""

    node: Node
    files: tuple[Path, ...]


def read_layer(files: Files) -> Layer:
    """Return the settings of *files*, or empty ones where there is no configuration file.

    Raises:
        ConfigError: A file cannot be used, or is included where it may not be.
    """
    return _Reading(files).layer()


class _Reading:
    def __init__(self, files: Files) -> None:
        self._files = files
        self._read: list[Path] = []

    def layer(self) -> Layer:
        data = self._files.read(CONFIG_FILE)
        start = self._files.root / CONFIG_FILE
        node = Node(Place(start), {}) if data is None else self._file(CONFIG_FILE, data, ())
        node = placed_topics(merge(self._prompts(), node), self._files.root)
        return Layer(node, tuple(dict.fromkeys(self._read)))

    def _prompts(self) -> Node:
        """Return the prompts of the file beside the configuration, which may hold nothing else."""
        path = self._files.root / PROMPTS_FILE
        data = self._files.read(PROMPTS_FILE)
        if data is None:
            return Node(Place(path), {})
        self._read.append(path)
        own = _tidied(parse(data, path))
        for key, node in own.entries.items():
            if key != "prompts":
                raise _error(node, f"'{key}' does not belong here: {PROMPTS_FILE} holds 'prompts' alone")
        check_file(own)
        return own

    def _file(self, name: str, data: bytes, above: tuple[str, ...]) -> Node:
        path = self._files.root / name
        self._read.append(path)
        own = _tidied(parse(data, path))
        check_file(own)
        merged = Node(own.place, {})
        includes = own.get("include")
        for include in includes.items if includes else ():
            merged = merge(merged, self._included(include, (*above, name)))
        return merge(merged, own)

    def _included(self, include: Node, chain: tuple[str, ...]) -> Node:
        name = _resolved(include, chain[-1])
        if name in chain:
            raise _error(include, f"this include goes in a circle: {' -> '.join([*chain, name])}")
        if len(self._read) >= MAX_FILES:
            raise _error(include, f"more than {MAX_FILES} files are included")
        data = self._files.read(name)
        if data is None:
            raise _error(include, f"there is no file '{name}' in {self._files.root} to include")
        return self._file(name, data, chain)


def _resolved(include: Node, including: str) -> str:
    given = str(include.value)
    name = posixpath.normpath(posixpath.join(posixpath.dirname(including), given))
    outside = posixpath.isabs(given) or given.startswith("~") or name == ".." or name.startswith("../")
    if outside or "\\" in given or "\0" in given or not given:
        raise _error(include, f"'{given}' is outside the .onetool directory and may not be included")
    return name


def _tidied(node: Node) -> Node:
    """Return one file's settings in the forms that merging understands."""
    return Node(node.place, dict(_tidied_entries(node)))


def _tidied_entries(node: Node) -> Iterator[tuple[str, Node]]:
    if {"alias", "aliases"} <= node.entries.keys():
        raise _error(node.entries["alias"], "'alias' and 'aliases' are the same setting: keep one")
    for key, value in node.entries.items():
        if value.value is None:
            # A section whose lines are all commented out means no more than no section.
            continue
        yield ("aliases", value) if key == "alias" else (key, _project_forms(value) if key == "projects" else value)


def _project_forms(projects: Node) -> Node:
    if not projects.entries:
        return projects
    return Node(projects.place, {name: _project_form(node) for name, node in projects.entries.items()})


def _project_form(node: Node) -> Node:
    return Node(node.place, {"path": node}) if isinstance(node.value, str) else node


def _error(node: Node, message: str) -> ConfigError:
    return ConfigError(message, file=node.place.file, line=node.place.line)
