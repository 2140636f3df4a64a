"""The formats that a program may ask for with ``__format__``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from ot.output.presentable import MAX_NODES, Describe, NotPresentable, Presenter, count_parts, describe_type
from ot.output.result_meta import Form
from ot.output.yaml_flow import yaml_flow

DEFAULT = "json"
MAX_YAML_PARTS = 50_000
"""YAML is written twenty times slower than JSON, which stands in for it above this: JSON is YAML, too."""


def serialize_result(
    value: Any, format: object = None, describe: Describe = describe_type, *, max_nodes: int = MAX_NODES
) -> str:
    """Return *value* as text: a string as it is, all else in *format*, compact JSON when that is unknown.

    Raises:
        NotPresentable: The value is nested too deeply, or holds too much.
    """
    if type(value) is str:
        return Presenter().present(value)
    if value is None:
        return "None"
    shown = Presenter(describe, max_nodes=max_nodes).present(value)
    if format == "raw":
        return _raw(value, shown)
    write = FORMATS.get(format, FORMATS[DEFAULT]) if type(format) is str else FORMATS[DEFAULT]
    return shown if type(shown) is str else write(shown)


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _json_h(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _yml(value: Any) -> str:
    if _is_quick_in_yaml(value):
        return yaml_flow(value)
    # A list of collections reads best an item a line; each item is inline.
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):  # pyright: ignore[reportUnknownVariableType] - JSON types
        return "\n".join(f"- {_json(item)}" for item in value)  # pyright: ignore[reportUnknownVariableType] - JSON types
    return _json(value)


def _yml_h(value: Any) -> str:
    return _yaml(value) if _is_quick_in_yaml(value) else _json_h(value)


def _is_quick_in_yaml(value: Any) -> bool:
    try:
        count_parts(value, MAX_YAML_PARTS)
    except NotPresentable:
        return False
    return True


def _yaml(value: Any) -> str:
    import yaml  # noqa: PLC0415 - as in yaml_flow

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(
        value, Dumper=dumper, default_flow_style=False, sort_keys=False, allow_unicode=True, width=120
    )
    return text.removesuffix("\n").removesuffix("\n...")


def _raw(value: Any, shown: Any) -> str:
    """Return ``str(value)``; *shown* exists, so the value is known to be bounded."""
    try:
        return Presenter().present(str(value))
    except ValueError:  # an int of too many digits
        return str(shown)


FORMATS: dict[str, Callable[[Any], str]] = {"json": _json, "json_h": _json_h, "yml": _yml, "yml_h": _yml_h}


def stored_text(value: Any, format: object, describe: Describe = describe_type) -> str:
    """Return *value* as it is written to the result store: an element or a key a line, so that lines mean something."""
    shown = Presenter(describe).present(value) if stored_form(value, format) == "json" else None
    if isinstance(shown, dict):
        return "{" + ",\n".join(f"{_json(key)}:{_json(item)}" for key, item in shown.items()) + "}"  # pyright: ignore[reportUnknownVariableType] - JSON types
    if isinstance(shown, list):
        return "[" + ",\n".join(_json(item) for item in shown) + "]"  # pyright: ignore[reportUnknownVariableType] - JSON types
    return serialize_result(value, format, describe)


def stored_form(value: Any, format: object) -> Form:
    """Return what ``stored_text`` makes of *value*."""
    compact = format not in ("raw", "yml", "yml_h", "json_h")
    return "json" if compact and type(value) in (list, tuple, set, dict) else "text"
