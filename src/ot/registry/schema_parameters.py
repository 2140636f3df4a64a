"""The parameters of a proxied tool, from its input schema."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ot.registry.clean_text import clean_line, unique_identifiers
from ot.registry.schema_types import as_schema, merged_object, python_type
from ot.registry.tool import Parameter

MAX_PARAMETERS = 500
MAX_DESCRIPTION = 1000
MAX_DEFAULT = 60
PLACEHOLDER = "'...'"
"""Stands for the default of an optional parameter when the schema does not tell it."""


def parameters_of_schema(schema: Any) -> tuple[tuple[Parameter, ...], Mapping[str, str]]:
    """Return the parameters, required ones first, and the original names of those that had to be renamed."""
    merged = merged_object(schema, schema)
    # A name may be required and described nowhere: without a parameter, no call would ever fit.
    bare = {name: True for name in merged["required"] if name not in merged["properties"]}
    properties: dict[str, Any] = dict(list({**merged["properties"], **bare}.items())[:MAX_PARAMETERS])
    names = unique_identifiers([str(name) for name in properties])
    required = [name for name in properties if name in merged["required"]]
    optional = [name for name in properties if name not in merged["required"]]
    parameters = [_parameter(names[name], properties[name], schema, required=True) for name in required]
    parameters += [_parameter(names[name], properties[name], schema, required=False) for name in optional]
    if _takes_more(as_schema(schema)):
        parameters.append(Parameter(_free("more", parameters), "kwargs"))
    return tuple(parameters), {new: old for old, new in names.items() if new != old}


def _parameter(name: str, schema: Any, root: Any, *, required: bool) -> Parameter:
    found = as_schema(schema)
    return Parameter(
        name=name,
        kind="keyword",
        annotation=python_type(schema, root),
        default=None if required else _default(found),
        description=_description(found),
    )


def _description(schema: Mapping[str, Any]) -> str:
    text = clean_line(schema.get("description") or schema.get("title"), MAX_DESCRIPTION)
    format = clean_line(schema.get("format"), 40)
    return f"{text} ({format})".strip() if format and format not in text else text


def _default(schema: Mapping[str, Any]) -> str:
    value = schema.get("default")
    if "default" not in schema or (isinstance(value, float) and not math.isfinite(value)):
        return PLACEHOLDER
    if isinstance(value, str):
        value = clean_line(value, MAX_DEFAULT) if len(value) <= MAX_DEFAULT else None
        return PLACEHOLDER if value is None else repr(value)
    if isinstance(value, int | float | bool | None) or value in ([], {}):
        return repr(value) if not isinstance(value, int) or abs(value) < 10**MAX_DEFAULT else PLACEHOLDER
    return PLACEHOLDER


def _takes_more(schema: Mapping[str, Any]) -> bool:
    """Return whether the schema says that it takes other names; one that says nothing is taken at its list."""
    more = schema.get("additionalProperties")
    return more is True or isinstance(more, Mapping) or bool(schema.get("patternProperties"))


def _free(name: str, parameters: list[Parameter]) -> str:
    taken = {parameter.name for parameter in parameters}
    while name in taken:
        name += "_"
    return name
