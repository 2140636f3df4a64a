"""Lists what is public, as the code has it now; ``python tests/public_surface.py changelog.d/NAME.TYPE.md`` writes it.

What counts as public, and what a version promises of it, is on the page docs/reference/support-and-versions.md.
Names and signatures are read from source, so that the list is the same on every Python.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import griffe
import typer.main
from fastmcp import Client
from griffe import Alias, Attribute, Class, Function, GriffeLoader, Module, ModulesCollection, TypeAlias

from checkout import ROOT, SOURCES, python_files
from ot import hooks
from ot.cli.commands import build_app
from ot.config import trust
from ot.config.models import VERSION
from ot.config.paths import Paths
from ot.config.sections import whole_model
from ot.output.result_blobs import ResultMeta
from ot.output.result_files import SUFFIXES
from ot.proxied import pin_books
from ot.registry.tool import signature_text
from ot.server.mcp_server import OneUser, build_server
from ot.server.run_description import SANDBOX
from ot.stats import schema
from ot.workspace import Workspace
from ot_sdk.wire import PROTOCOL

FILE = ROOT / "tests" / "public_surface.json"
PACKAGES = ("mcp_core", "onetool_run", "ot_sdk", "ot_sdk.testing")
SPECIAL = ("__aenter__", "__aexit__", "__call__", "__enter__", "__exit__", "__init__", "__str__")
OPTIONAL = re.compile(r"Optional\[(\w+)\]")
"""Newer Pythons write it otherwise."""
NOTES = ("title", "description", "examples")
"""What a schema tells people, and no program."""

type Surface = dict[str, dict[str, Any]]


def collect() -> Surface:
    """Return everything public, by kind and name."""
    with tempfile.TemporaryDirectory() as directory:
        run, packs = asyncio.run(_run_and_packs(Path(directory)))
    modules = _modules()
    return {
        "commands": dict(sorted(_commands(typer.main.get_command(build_app()), "onetool"))),
        "configuration": dict(_settings()),
        "distribution": _distribution(),
        "environment variables": dict.fromkeys(sorted(_variables()), "read"),
        "errors": {name: text for name, text in _members(modules, "ot.errors") if text.startswith("class(")},
        "formats": _formats(),
        "packs": packs,
        "python": {name: text for package in PACKAGES for name, text in _members(modules, package)},
        "run": run,
        "seams": {name: text for seam in _seams() for name, text in _members(modules, seam)},
    }


def as_text(surface: Surface) -> str:
    """Return *surface* as the file holds it."""
    return json.dumps(surface, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def differences(old: Surface, new: Surface) -> list[str]:
    """Return what was added, removed and changed from *old* to *new*, a line each."""
    flat_old, flat_new = dict(_flat(old)), dict(_flat(new))
    names = sorted(flat_old.keys() | flat_new.keys())
    return [
        f"{'added' if name not in flat_old else 'removed' if name not in flat_new else 'changed'} {name}"
        for name in names
        if flat_old.get(name) != flat_new.get(name)
    ]


def _flat(surface: Surface) -> Iterator[tuple[str, Any]]:
    for kind, entries in surface.items():
        yield from ((f"{kind}: {name}", value) for name, value in entries.items())


# ---------------------------------------------------------------- Python, read from source


def _seams() -> list[str]:
    return re.findall(r"^::: (\S+)", (ROOT / "docs/reference/seams.md").read_text(encoding="utf-8"), re.MULTILINE)


def _modules() -> ModulesCollection:
    """Return the packages with public names, of those that are there, parsed and not imported."""
    loader = GriffeLoader(search_paths=SOURCES)
    for name in sorted({"ot", *(name.partition(".")[0] for name in (*PACKAGES, *_seams()))}):
        if any((source / name).is_dir() for source in SOURCES):
            loader.load(name)
    loader.resolve_aliases(implicit=False)
    return loader.modules_collection


def _members(modules: ModulesCollection, path: str) -> Iterator[tuple[str, str]]:
    """Yield what the module or object at *path* offers: the names of its ``__all__``, or all that it defines."""
    if path.partition(".")[0] not in modules.members:
        return
    found = modules[path]
    if not isinstance(found, Module):
        yield from _described(path, found)
        return
    defined = (name for name, member in found.members.items() if not (member.is_alias or member.is_module))
    names = [str(name) for name in found.exports or ()] or [name for name in defined if not name.startswith("_")]
    for name in sorted(names):
        member = found.members[name]
        if member.is_module and name not in member.members:
            yield from _members(modules, f"{path}.{name}")  # a file that is offered as it is
            continue
        # A function whose file is called as it is hides that file, and not the other way round.
        yield from _described(f"{path}.{name}", member.members[name] if member.is_module else member)


def _described(name: str, found: griffe.Object | Alias) -> Iterator[tuple[str, str]]:
    try:
        target = found.final_target if isinstance(found, Alias) else found
    except griffe.AliasResolutionError:
        yield name, f"from {found.path}"  # another distribution's
        return
    if isinstance(target, Function):
        yield name, f"{'async ' * ('async' in target.labels)}{target.signature()}"
    elif isinstance(target, Attribute):
        yield name, _value(target)
    elif isinstance(target, Class):
        yield name, f"class({', '.join(map(str, target.bases))})"
        for member_name, member in target.members.items():
            if not member_name.startswith("_") or member_name in SPECIAL:
                yield from _described(f"{name}.{member_name}", member)
    elif isinstance(target, TypeAlias):
        yield name, f"type {target.value}"


def _value(attribute: Attribute) -> str:
    if "property" in attribute.labels:
        return f"property -> {attribute.annotation}"
    default = "" if attribute.value is None else f" = {attribute.value}"
    return f"{attribute.annotation or 'value'}{default}"


def _variables() -> set[str]:
    texts = (file.read_text(encoding="utf-8") for file in python_files(SOURCES).values())
    return {name for text in texts for name in re.findall(r'"((?:OT|ONETOOL)_[A-Z0-9_]+)"', text)}


# ---------------------------------------------------------------- commands, settings, the distribution


def _commands(command: Any, name: str) -> Iterator[tuple[str, list[str]]]:
    hidden = ("help", "install_completion", "show_completion")
    yield name, [_parameter(parameter) for parameter in command.params if parameter.name not in hidden]
    for sub, child in getattr(command, "commands", {}).items():
        yield from _commands(child, f"{name} {sub}")


def _parameter(parameter: Any) -> str:
    is_argument = parameter.param_type_name == "argument"
    names = parameter.name.upper() if is_argument else "/".join([*parameter.opts, *parameter.secondary_opts])
    kind = inspect.formatannotation(parameter.type_descriptor.annotation)
    default = "" if parameter.default in (None, False) else f" = {parameter.default!r}"
    return f"{names}: {kind}{' ...' * (parameter.nargs == -1)}{' required' * bool(parameter.required)}{default}"


def _settings() -> Iterator[tuple[str, Any]]:
    whole = whole_model().model_json_schema(mode="validation")
    yield from _keys(whole, whole.get("$defs", {}), "")


def _keys(rule: Mapping[str, Any], models: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for name, entry in rule.get("properties", {}).items():
        below = models.get(entry.get("$ref", "").rpartition("/")[2])
        each = entry.get("additionalProperties")
        model = models.get(each.get("$ref", "").rpartition("/")[2]) if isinstance(each, dict) else None
        yield f"{above}{name}", "section" if below else _without_notes(entry)
        if below or model:
            yield from _keys(below or model or {}, models, f"{above}{name}." + "<name>." * bool(model))


def _without_notes(rule: Any) -> Any:
    if isinstance(rule, list):
        return [_without_notes(entry) for entry in rule]
    if isinstance(rule, dict):
        return {key: _without_notes(entry) for key, entry in rule.items() if key not in NOTES}
    return rule


def _distribution() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        "name": project["name"],
        "requires-python": project["requires-python"],
        "commands": project["scripts"],
        "extras": sorted(project["optional-dependencies"]),
        "entry points": sorted(
            [hooks.COMMANDS, hooks.EDGES, hooks.FINDINGS, hooks.OBSERVERS, hooks.PACKS, hooks.SETTINGS, hooks.STORES]
        ),
    }


# ---------------------------------------------------------------- what a model sees, and what is kept on disk


async def _run_and_packs(directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    workspace = Workspace.alone(Paths.of(directory, directory / "user"))
    try:
        run: dict[str, Any] = {}
        for engine in SANDBOX:
            async with Client(build_server(OneUser(workspace), "0", engine)) as client:
                (tool,) = await client.list_tools()
                templates = await client.list_resource_templates()
                resources = [str(one.uri) for one in await client.list_resources()]
            run[f"description, {engine} engine"] = tool.description
            hints = tool.annotations.model_dump(exclude_none=True) if tool.annotations else {}
            run |= {"parameters": tool.input_schema, "hints": hints}
            run["resources"] = sorted([*resources, *(one.uri_template for one in templates)])
        packs = workspace.picture.registry.packs
        shown = {
            tool.full_name: OPTIONAL.sub(r"\1 | None", signature_text(tool))
            for pack in packs.values()
            for tool in pack.tools.values()
        }
        return run, dict(sorted(shown.items()))
    finally:
        await workspace.aclose()


def _formats() -> dict[str, Any]:
    pins = pin_books.json_of_book(pin_books.PinBook("server"))
    return {
        "configuration": {"version": VERSION},
        "pins": {"version": pins["version"], "keys": sorted(pins)},
        "statistics": {"version": schema.VERSION, "tables": " ".join(schema.TABLES.split())},
        "stored result": {"files": sorted(SUFFIXES), "meta": _without_notes(ResultMeta.model_json_schema())},
        "trust": {"file": trust.TRUST_FILE, "book": _without_notes(trust._Book.model_json_schema())},
        "worker protocol": {"version": PROTOCOL},
    }


# ---------------------------------------------------------------- writing the list


def main(arguments: list[str]) -> str:
    """Write the list, and return an error instead where no changelog fragment announces what changed."""
    old: Surface = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    new = collect()
    changed = differences(old, json.loads(as_text(new)))
    sys.stdout.write("".join(f"{line}\n" for line in changed) or "nothing changed\n")
    fragments = [Path(name) for name in arguments]
    announced = fragments and all(one.is_file() and one.resolve().parent.name == "changelog.d" for one in fragments)
    if changed and not announced:
        return "not written: name the fragment that announces it, as in changelog.d/<name>.<type>.md"
    FILE.write_text(as_text(new), encoding="utf-8")
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) or 0)
