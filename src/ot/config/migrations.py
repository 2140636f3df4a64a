"""Older forms of a configuration file, and how each is written now: one step a form, carried out in order."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ot.config.edit_config import config_text, files_of
from ot.config.layer import Directory
from ot.config.paths import CONFIG_FILE, Paths
from ot.config.yaml_edit import YamlText

FIRST_VERSION = 1
"""The format of a file that names none: the key has been there from the first release on."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: what it does, in words, and a pure function that changes nothing in a file that is up to date."""

    says: str
    change: Callable[[YamlText], YamlText]


@dataclass(frozen=True, slots=True)
class Outdated:
    """A file in an older form, and the same file as it would be written now."""

    name: str
    of_user: bool
    steps: tuple[str, ...]
    old: YamlText
    new: YamlText

    @property
    def file(self) -> Path:
        """Where it is."""
        return self.old.file


def rename_alias(text: YamlText) -> YamlText:
    """Return *text* with ``alias`` as ``aliases``; a file with both is left for its owner to decide."""
    top = text.plain
    return text.rename(("alias",), "aliases") if "alias" in top and "aliases" not in top else text


def name_version(text: YamlText) -> YamlText:
    """Return *text* with the version of its format; an included file is of the format of the one that includes it."""
    needless = text.file.name != CONFIG_FILE or "version" in text.plain
    return text if needless else text.put(("version",), FIRST_VERSION)


STEPS = (
    Migration("'alias' is called 'aliases'", rename_alias),
    Migration("the file names its format with 'version'", name_version),
)


def migrate_text(text: YamlText) -> tuple[YamlText, tuple[str, ...]]:
    """Return *text* as it is written now, and what was done to it.

    Raises:
        ConfigError: It cannot be changed without harm.
    """
    done: list[str] = []
    for step in STEPS:
        changed = step.change(text)
        done += [step.says] if changed.text != text.text else []
        text = changed
    return text, tuple(done)


def find_outdated_files(paths: Paths) -> list[Outdated]:
    """Return the user's and the project's files, and those that they include, that are in an older form.

    Raises:
        ConfigError: One cannot be read, or cannot be changed without harm.
    """
    layers = [(files_of(paths, use_global=True), True)]
    if paths.project_dir is not None:
        layers.append((files_of(paths, use_global=False), False))
    found: list[Outdated] = []
    for files, of_user in layers:
        for name in _names(files, CONFIG_FILE, set()):
            old = config_text(files, name)
            new, steps = migrate_text(old)
            found += [Outdated(name, of_user, steps, old, new)] if steps else []
    return found


def _names(files: Directory, name: str, seen: set[str]) -> Iterator[str]:
    """Yield *name* and what it includes; what is missing or lies outside is for whoever loads it to refuse."""
    if name in seen or posixpath.isabs(name) or name.split("/", 1)[0] in ("..", "~") or files.read(name) is None:
        return
    seen.add(name)
    yield name
    for include in config_text(files, name).get("include") or ():
        yield from _names(files, posixpath.normpath(posixpath.join(posixpath.dirname(name), str(include))), seen)
