"""One configuration file with all that it includes, as one layer of settings."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ot.config.document import MAX_BYTES, Location, Node, node_of, parse
from ot.config.paths import CONFIG_FILE, PROMPTS_FILE, expand_home
from ot.config.problems import check_file
from ot.errors import ConfigError
from ot.files.private_file import read_regular

MAX_FILES = 100
GIVEN = Path("OneTool(config=...)")
"""Where errors say that settings stand which a program gives."""
TOPICS = ("tools", "msg", "topics")

ADDED_UP = ("deny",)
"""Lists of the policy to which a project may add, and from which it takes nothing.

Not ``ask``: a pattern of the project's that is narrower than one the user denies would loosen it.
"""


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


def read_layer(files: Files, given: Mapping[str, Any] | None = None) -> Layer:
    """Return the settings of *files*, or empty ones where there is no configuration file; *given* are laid over them.

    Raises:
        ConfigError: A file cannot be used, or is included where it may not be.
    """
    layer = _Reading(files).layer()
    return Layer(merge(layer.node, _as_in_a_file(given, files.root)), layer.files) if given else layer


def _as_in_a_file(given: Mapping[str, Any], root: Path) -> Node:
    """Return settings that a program gives as if they stood in a file below *root*."""
    if "include" in given:
        raise ConfigError("'include' is allowed only in a file", file=GIVEN)
    return _with_placed_topics(_tidy(node_of(given, Location(GIVEN))), root)


class _Reading:
    def __init__(self, files: Files) -> None:
        self._files = files
        self._read: list[Path] = []

    def layer(self) -> Layer:
        data = self._files.read(CONFIG_FILE)
        start = self._files.root / CONFIG_FILE
        node = Node(Location(start), {}) if data is None else self._file(CONFIG_FILE, data, ())
        node = _with_placed_topics(merge(self._prompts(), node), self._files.root)
        return Layer(node, tuple(dict.fromkeys(self._read)))

    def _prompts(self) -> Node:
        """Return the prompts of the file beside the configuration, which may hold nothing else."""
        path = self._files.root / PROMPTS_FILE
        data = self._files.read(PROMPTS_FILE)
        if data is None:
            return Node(Location(path), {})
        self._read.append(path)
        own = _tidy(parse(data, path))
        for key, node in own.entries.items():
            if key != "prompts":
                raise _error(node, f"'{key}' is not allowed here: {PROMPTS_FILE} may contain only 'prompts'")
        check_file(own)
        return own

    def _file(self, name: str, data: bytes, above: tuple[str, ...]) -> Node:
        path = self._files.root / name
        self._read.append(path)
        own = _tidy(parse(data, path))
        check_file(own)
        merged = Node(own.place, {})
        for include in own.at("include").items:
            merged = merge(merged, self._include(include, (*above, name)))
        return merge(merged, own)

    def _include(self, include: Node, chain: tuple[str, ...]) -> Node:
        name = _resolve(include, chain[-1])
        if name in chain:
            raise _error(include, f"this include is circular: {' -> '.join([*chain, name])}")
        if len(self._read) >= MAX_FILES:
            raise _error(include, f"more than {MAX_FILES} files are included")
        data = self._files.read(name)
        if data is None:
            raise _error(include, f"there is no file '{name}' in {self._files.root} to include")
        return self._file(name, data, chain)


def _resolve(include: Node, including: str) -> str:
    given = str(include.value)
    name = posixpath.normpath(posixpath.join(posixpath.dirname(including), given))
    outside = posixpath.isabs(given) or given.startswith("~") or name == ".." or name.startswith("../")
    if outside or "\\" in given or "\0" in given or not given:
        raise _error(include, f"'{given}' is outside the .onetool directory and may not be included")
    return name


def _tidy(node: Node) -> Node:
    """Return one file's settings in the forms that merging understands."""
    if {"alias", "aliases"} <= node.entries.keys():
        raise _error(node.entries["alias"], "'alias' and 'aliases' are the same setting: keep one")
    # A section whose lines are all commented out means no more than no section.
    entries = {key: value for key, value in node.entries.items() if value.value is not None}
    if "projects" in entries:
        entries["projects"] = entries["projects"].map_entries(
            lambda _, project: Node(project.place, {"path": project}) if isinstance(project.value, str) else project
        )
    return Node(node.place, {"aliases" if key == "alias" else key: value for key, value in entries.items()})


def _error(node: Node, message: str) -> ConfigError:
    return ConfigError(message, file=node.place.file, line=node.place.line)


# ---------------------------------------------------------------- one over another


def merge(under: Node, over: Node) -> Node:
    """Return *under* with *over* laid on it: mappings key by key, anything else replaced."""
    if not isinstance(under.value, Mapping) or not isinstance(over.value, Mapping):
        return over
    merged = dict(under.value)
    for key, node in over.value.items():
        merged[key] = merge(merged[key], node) if key in merged else node
    return Node(over.place, merged)


def merge_project(user: Node, project: Node) -> Node:
    """Return the user's settings with a project's laid on them: what either denies is denied.

    A project's server stands in for one of the user's that has its name, and gets nothing of it: laid over it key by
    key, the project could send the user's headers to an address of its own.
    """
    merged = merge(user, project)
    if servers := project.get("servers"):
        merged = merged.put(("servers",), Node(servers.place, {**user.at("servers").entries, **servers.entries}))
    for name in ADDED_UP:
        known, more = user.at("policy", name).items, project.at("policy", name).items
        seen = {pattern.text for pattern in known}
        if both := (*known, *(pattern for pattern in more if pattern.text not in seen)):
            merged = merged.put(("policy", name), Node(merged.at("policy", name).place, both))
    return merged


def servers_used_in(user: Node, cwd: Path) -> tuple[Node, dict[str, str]]:
    """Return the user's settings without the servers that are for other directories than *cwd*, and those."""
    servers = user.at("servers")
    only = {name: str(node.value) for name, server in servers.entries.items() if (node := server.get("only_in"))}
    if not only:
        return user, {}
    here = Path(os.path.realpath(cwd))
    places = {name: os.path.realpath(expand_home(directory)) for name, directory in only.items() if directory}
    elsewhere = {name: only[name] for name, place in places.items() if not here.is_relative_to(place)}
    used = {name: server for name, server in servers.entries.items() if name not in elsewhere}
    return user.put(("servers",), Node(servers.place, used)), elsewhere


# ---------------------------------------------------------------- the files of topics


def _with_placed_topics(layer: Node, root: Path) -> Node:
    """Return *layer* with the files of its topics as absolute paths: relative ones are below *root*."""
    topics = layer.at(*TOPICS)
    if not topics.items:
        return layer
    return layer.put(TOPICS, Node(topics.place, tuple(_place_file(topic, root) for topic in topics.items)))


def _place_file(topic: Node, root: Path) -> Node:
    file = topic.get("file")
    if file is None or not isinstance(file.value, str):
        return topic
    path = os.path.normpath(root / expand_home(file.value))
    return topic.put(("file",), Node(file.place, path, path))
