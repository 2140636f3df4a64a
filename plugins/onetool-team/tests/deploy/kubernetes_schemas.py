"""JSON schemas of Kubernetes objects, made of the classes that lightkube generates from the API's own description."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from jsonschema_rs import Draft202012Validator


def problems_of(thing: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the names and types in *thing*, whose kind says what it should be."""
    group, _, version = thing["apiVersion"].rpartition("/")
    found = _validator(f"{group.partition('.')[0] or 'core'}_{version}", thing["kind"]).iter_errors(thing)
    return [f"{thing['kind']}: {'/'.join(map(str, error.instance_path))}: {error.message}" for error in found]


@cache
def _validator(module: str, kind: str) -> Draft202012Validator:
    schema = msgspec.json.schema(getattr(importlib.import_module(f"lightkube.models.{module}"), kind))
    for definition in schema["$defs"].values():
        # Whatever has no such field is a mistake of ours: a cluster would ignore it, or refuse it.
        definition["additionalProperties"] = False
    return Draft202012Validator(schema)
