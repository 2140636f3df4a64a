"""Reads what a project requires: lists, requirements.txt, pyproject.toml, package.json."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from package_registries import Registry
from packaging.requirements import InvalidRequirement, Requirement
from service_client import at

MAX_REQUIREMENTS = 300
MAX_TEXT = 500_000
MAX_LINE = 1_000
PROJECT = re.compile(r"^[ \t]*\[(project|dependency-groups)\]", re.MULTILINE)
GROUPS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")


@dataclass(frozen=True)
class RequiredPackage:
    """A package and the range of versions that is wanted of it; *problem* where it cannot be read."""

    name: str
    wanted: str
    problem: str = ""


def read_requirements(registry: Registry, given: object) -> list[RequiredPackage]:
    """Return what *given* requires, in order.

    Raises:
        TypeError, ValueError: It has none of these forms, or is too much.
    """
    read = _npm_required if registry.name == "npm" else _python_required
    found = [read(registry, entry) for entry in _entries(registry, given)]
    if not found:
        raise ValueError("requirements names no package")
    if len(found) > MAX_REQUIREMENTS:
        raise ValueError(f"requirements names {len(found):,} packages, more than {MAX_REQUIREMENTS}: ask in parts")
    return found


def _entries(registry: Registry, given: object) -> list[str]:
    if isinstance(given, str):
        if len(given) > MAX_TEXT:
            raise ValueError(
                f"requirements has {len(given):,} characters, more than {MAX_TEXT:,}: pass the list itself"
            )
        return _package_json(given) if registry.name == "npm" else _python_file(given)
    if isinstance(given, Mapping):
        pairs = cast("Mapping[object, object]", given).items()
        return [_entry(registry, str(name), str(wanted).strip()) for name, wanted in pairs]
    if not isinstance(given, list) or not all(isinstance(entry, str) for entry in cast("list[object]", given)):
        raise TypeError("requirements must be a list of texts, a dict, or the text of a file")
    return cast("list[str]", given)


def _entry(registry: Registry, name: str, wanted: str) -> str:
    if registry.name == "npm":
        return f"{name}@{wanted}"
    return f"{name} {'==' if wanted[:1].isdigit() else ''}{wanted.removeprefix('*')}"


def _package_json(text: str) -> list[str]:
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("requirements is a text that is not JSON: give the text of package.json, or a list") from None
    groups = [at(document, group) for group in GROUPS]
    return [f"{name}@{wanted}" for group in groups if isinstance(group, dict) for name, wanted in _pairs(group)]


def _pairs(group: Any) -> Iterable[tuple[str, Any]]:
    return cast("dict[str, Any]", group).items()


def _python_file(text: str) -> list[str]:
    if not PROJECT.search(text):
        joined = text.replace("\\\r\n", " ").replace("\\\n", " ")
        lines = (re.split(r"(?:^|\s)#|\s--", line)[0].strip() for line in joined.splitlines())
        return [line for line in lines if line and not line.startswith("-")]
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        raise ValueError("requirements looks like pyproject.toml, but is not valid TOML") from None
    groups = [at(document, "project", "dependencies")]
    for more in (at(document, "project", "optional-dependencies"), at(document, "dependency-groups")):
        groups += [group for _, group in _pairs(more)] if isinstance(more, dict) else []
    return [entry for group in groups if isinstance(group, list) for entry in _texts(group)]


def _texts(group: Any) -> list[str]:
    return [entry for entry in cast("list[Any]", group) if isinstance(entry, str)]


def _python_required(registry: Registry, entry: str) -> RequiredPackage:
    try:
        read = Requirement(entry) if len(entry) <= MAX_LINE else None
        name = registry.check_name(read.name) if read else ""
    except (InvalidRequirement, ValueError, RecursionError):
        read, name = None, ""
    if read is None:
        return RequiredPackage(entry[:100], "", "this is not a requirement such as 'name>=1.2,<2'")
    if read.url:
        return RequiredPackage(name, "", "it comes from an address of its own, not from the registry")
    return RequiredPackage(name, str(read.specifier))


def _npm_required(registry: Registry, entry: str) -> RequiredPackage:
    name, at_sign, wanted = entry.rpartition("@")
    if not name:  # '@scope/name', or no range at all
        name, wanted = (f"{at_sign}{wanted}", "*")
    try:
        name = registry.check_name(name)
    except ValueError:
        return RequiredPackage(entry[:100], "", "this is not a requirement such as 'name@^1.2.0'")
    try:
        registry.versions.within(wanted)
    except ValueError as error:
        return RequiredPackage(name, wanted[:100], str(error))
    return RequiredPackage(name, wanted)
