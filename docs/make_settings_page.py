"""Writes the settings in docs/reference/configuration.md from the models; a test fails when the page is behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le

from ot.config.project_rules import project_rule
from ot.config.shape import SettingKey, all_keys

PAGE = Path(__file__).parent / "reference" / "configuration.md"
BEGIN = "<!-- keys: made by python docs/make_settings_page.py -->\n"
END = "<!-- end of keys -->\n"
KINDS = {int: "whole number", float: "number", str: "text", bool: "true or false", Path: "path", Any: "any value"}


def render_reference() -> str:
    """Return a heading and a few lines for every key."""
    return "\n".join(line for key in all_keys() for line in _lines(key)) + "\n"


def brought_up_to_date(page: str) -> str:
    """Return *page* with its part between the marks made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{render_reference()}\n{END}{after}"


def heading(key: SettingKey) -> str:
    """Return the line under which *key* is described."""
    return f"### `{key.name}`"


def _lines(key: SettingKey) -> Iterator[str]:
    yield from (heading(key), "", f"{key.description}.", "")
    rows = [("value", _kind(key)), ("allowed", _allowed(key)), ("default", _default(key))]
    rows += [("example", _code(example)) for example in key.field.examples or []]
    rows += [("project", project_rule(key.path))]
    yield from (f"- {title}: {text}" for title, text in rows if text)
    yield ""


def _kind(key: SettingKey) -> str:
    kind: Any = key.field.annotation
    if get_origin(kind) is UnionType and get_args(kind)[0] in KINDS:
        kind = get_args(kind)[0]  # the other one is None, for what is not set
    origin = get_origin(kind)
    if origin is Literal:
        return "one of " + ", ".join(f"`{choice}`" for choice in get_args(kind))
    if origin is tuple:
        return "list of texts"
    if origin is not None or key.section:
        return "keys with values"
    return KINDS.get(kind, "text")


def _allowed(key: SettingKey) -> str:
    words = {Gt: "above {0.gt:,}", Ge: "{0.ge:,} or more", Le: "at most {0.le:,}"}
    rules = [words[type(rule)].format(rule) for rule in key.field.metadata if type(rule) in words]
    return ", ".join(rules)


def _default(key: SettingKey) -> str:
    if key.section:
        return ""
    return "none: it must be given" if key.field.is_required() else _code(key.default)


def _code(value: Any) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`"


if __name__ == "__main__":
    PAGE.write_text(brought_up_to_date(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
