"""A .onetool directory to start from, with what version control leaves out, and the schema of its configuration."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from ot.config.models import VERSION, Project
from ot.config.paths import CONFIG_FILE
from ot.config.sections import whole_model
from ot.errors import ConfigError

DRAFT = "https://json-schema.org/draft/2020-12/schema"
HEAD = f"""\
# Settings of OneTool. What else can be set: docs/reference/configuration.md, or 'onetool config schema' for editors.
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


# ---------------------------------------------------------------- the schema of a configuration, for editors


def json_schema() -> dict[str, Any]:
    """Return the schema of a configuration file, with the forms that the models accept beside their own."""
    schema = whole_model().model_json_schema(mode="validation")
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
