"""The configuration's JSON schema, for editors and for `onetool config schema`."""

from __future__ import annotations

from typing import Any

from ot.config.models import Config, Project

SCHEMA_FILE = "onetool.schema.json"
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Return the schema of a configuration file, with the forms that the models accept beside their own."""
    schema = Config.model_json_schema(mode="validation")
    properties = schema["properties"]
    aliases = properties["aliases"]
    properties["alias"] = {**aliases, "title": "Alias", "description": "The same as aliases; a file gives one of both"}
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
