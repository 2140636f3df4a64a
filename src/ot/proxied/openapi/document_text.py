"""Reads the text of an OpenAPI document, and tells one that can be used from all else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

import yaml

from ot.registry.clean_text import clean_line
from ot.registry.schema_types import as_schema

MAX_VALUES = 1_500_000
MAX_DEPTH = 200
CONVERT = "convert it first, for example with 'npx swagger2openapi'"


def is_address(source: str) -> bool:
    """Return whether *source* is an address and no path."""
    return source.startswith(("http://", "https://"))


def base_address(document: Mapping[str, Any], source: str) -> str:
    """Return the address that the document says its operations are at, or nothing, if it could be taken for another."""
    servers: Any = document.get("servers")
    entry = as_schema(cast("list[Any]", servers)[0] if isinstance(servers, list) and servers else None)
    url = str(entry.get("url") or "/")
    for name, variable in as_schema(entry.get("variables")).items():
        url = url.replace(f"{{{name}}}", str(as_schema(variable).get("default", "")))
    full = urljoin(source, url) if is_address(source) else url
    parts = urlsplit(full)
    return full.rstrip("/") if is_address(full) and parts.hostname and "@" not in parts.netloc else ""


def parse_document(data: bytes) -> dict[str, Any]:
    """Return the document that *data* holds as JSON or YAML.

    Raises:
        ValueError: It is malformed, or no document that can be used; the text says how.
    """
    try:
        found = json.loads(data) if data.lstrip()[:1] in (b"{", b"[") else _plain(_yaml(data), _Count(MAX_VALUES))
    except RecursionError:
        raise ValueError("the document is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the document is malformed JSON: {error}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"the document is not UTF-8 text: {error}") from None
    except yaml.YAMLError as error:
        raise ValueError(f"the document is malformed YAML: {clean_line(str(error), 300)}") from None
    _refuse_unusable(found)
    return found


def _refuse_unusable(found: Any) -> None:
    given = as_schema(found)
    if "swagger" in given:
        raise ValueError(f"the document is Swagger {given['swagger']}; OpenAPI 3.0 or 3.1 is required: {CONVERT}")
    version = str(given.get("openapi") or "")
    if not version.startswith("3."):
        what = f"says 'openapi: {clean_line(version, 20)}'" if version else "has no 'openapi: 3...' at its top"
        raise ValueError(f"this is not a usable OpenAPI document: it {what}; versions 3.0 and 3.1 are supported")
    paths = given.get("paths")
    if not isinstance(paths, dict) or not paths:
        raise ValueError("the document describes no operations: its 'paths' are missing or empty")


# ---------------------------------------------------------------- YAML


CORE = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]{1,30}", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]{1,30}|[0-9]{1,30}\.[0-9]{0,30})(?:[eE][-+]?[0-9]{1,5})?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
)
"""What is not text in YAML 1.2; a date, a time and a plain ``no`` are the texts that they are in JSON."""


def _yaml(data: bytes) -> Any:
    class CoreLoader(yaml.CSafeLoader):
        yaml_implicit_resolvers: Any = {}  # noqa: RUF012 - the library's own form

    for kind, form, first in CORE:
        getattr(CoreLoader, "add_implicit_resolver")(  # noqa: B009 - its stub says nothing
            f"tag:yaml.org,2002:{kind}", re.compile(f"(?:{form})$"), list(first)
        )
    return yaml.load(data, Loader=CoreLoader)


@dataclass(slots=True)
class _Count:
    left: int


def _plain(value: Any, count: _Count, depth: int = 0) -> Any:
    """Return *value* with texts for keys; aliases of aliases, which would grow without end, are refused."""
    count.left -= 1
    if count.left < 0 or depth > MAX_DEPTH:
        raise ValueError("the document is too large or nested too deeply once its aliases are written out")
    if isinstance(value, dict):
        given = cast("dict[Any, Any]", value)
        return {str(key): _plain(part, count, depth + 1) for key, part in given.items()}
    if isinstance(value, list):
        return [_plain(part, count, depth + 1) for part in cast("list[Any]", value)]
    return value
