"""A .onetool directory to start from: the configuration, its schema, and what version control leaves out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ot.config.models import VERSION, Config, Project
from ot.config.paths import CONFIG_FILE
from ot.config.project_rules import project_rule
from ot.config.shape import SettingKey, all_keys
from ot.errors import ConfigError

SCHEMA_FILE = "onetool.schema.json"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
HEAD = f"""\
# yaml-language-server: $schema=./{SCHEMA_FILE}
# Settings of OneTool. A line that starts with '#' and no space shows a default: remove the '#' to change it,
# and the one of the section above it.
version: {VERSION}
"""
IGNORED = "tmp/\nlogs/\nstats/\nsessions/\nsecrets*.yaml\n"
"""What of a .onetool directory does not belong into version control."""


def write_new_directory(directory: Path, text: str) -> None:
    """Write the configuration *text* and what goes with it into *directory*, where there is none yet.

    Raises:
        ConfigError: It cannot be written.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_new(directory / CONFIG_FILE, text)
        _write_new(directory / SCHEMA_FILE, json.dumps(json_schema(), indent=2) + "\n")
        write_ignored(directory)
    except OSError as error:
        raise ConfigError(f"{error.filename or directory} cannot be written: {error.strerror}") from None


def write_ignored(directory: Path) -> None:
    """Say to version control what it leaves out of *directory*, unless something has that name there already."""
    with suppress(FileExistsError):
        _write_new(directory / ".gitignore", IGNORED)


def _write_new(path: Path, text: str) -> None:
    # Not through a link, also one that leads nowhere yet.
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


# ---------------------------------------------------------------- the configuration file, made from the models


def template() -> str:
    """Return the file's text; it is made from the models, and loads as it is."""
    keys = [key for key in all_keys() if key.path != ("version",) and "<name>" not in key.path]
    # What is below a section that is not there by default would show no default.
    apart = {key.path for key in keys if key.possible_section and not key.section}
    keys = [key for key in keys if not any(key.path[:depth] in apart for depth in range(1, len(key.path)))]
    return HEAD + "".join(f"{line}\n" for key in keys for line in _lines(key))


def flow(value: Any) -> str:
    """Return *value* as YAML on one line."""
    return json.dumps(value, ensure_ascii=False)


def _lines(key: SettingKey) -> Iterator[str]:
    *above, name = key.path
    indent = "  " * len(above)
    if not above:
        yield ""
    # At the left edge a space marks the explanation; below it, a second '#' does.
    yield f"#{indent}# {_explanation(key)}" if above else f"# {_explanation(key)}"
    yield f"#{indent}{name}:" if key.section else f"#{indent}{name}: {flow(key.default)}"


def _explanation(key: SettingKey) -> str:
    examples = [f"for example {flow(example)}" for example in key.field.examples or []]
    return "; ".join([key.description, *examples, *filter(None, [project_rule(key.path)])])


# ---------------------------------------------------------------- its schema, for editors


def json_schema() -> dict[str, Any]:
    """Return the schema of a configuration file, with the forms that the models accept beside their own."""
    schema = Config.model_json_schema(mode="validation")
    properties = schema["properties"]
    aliases = properties["aliases"]
    properties["alias"] = {
        **aliases,
        "title": "Alias",
        "description": "The same as aliases; a file has one or the other",
    }
    short = {"type": "string", "description": Project.model_fields["path"].description}
    projects = properties["projects"]
    projects["additionalProperties"] = {"anyOf": [short, projects["additionalProperties"]]}
    _allow_empty_sections(properties)
    return {"$schema": DRAFT, **schema, "title": "OneTool", "not": {"required": ["alias", "aliases"]}}


def _allow_empty_sections(properties: dict[str, Any]) -> None:
    # `limits:` with every line below it commented out is read as no section at all.
    for name, rule in properties.items():
        about = {key: rule[key] for key in ("title", "description", "default", "examples") if key in rule}
        rest = {key: value for key, value in rule.items() if key not in about}
        properties[name] = {**about, "anyOf": [rest, {"type": "null"}]}
