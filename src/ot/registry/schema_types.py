"""A JSON schema as the types and parameters that a Python programmer would write, bounded in length and work."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from ot.registry.clean_text import clean_line, unique_identifiers
from ot.registry.tool import PLACEHOLDER, Parameter

type Schema = Mapping[str, Any]

MAX_TEXT = 300
MAX_DEPTH = 4
MAX_KEYS = 16
MAX_CHOICES = 12
MAX_VALUE = 40
MAX_WORK = 2000
MAX_PARTS = 200
"""How many references, parts and choices are looked at for the properties of one object."""
MAX_PARAMETERS = 500
MAX_DESCRIPTION = 1000
MAX_DEFAULT = 60
NAMES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "array": "list",
    "object": "dict",
}
DATA = frozenset({"default", "examples", "example", "const", "enum"})
"""Keys of a schema that hold values, not schemas."""


def python_type(schema: Any, root: Any = None) -> str:
    """Return the type that *schema* describes as text, such as ``list[{id: int, name?: str}] | None``.

    *root* is the whole schema that its references point into.
    """
    for depth in range(MAX_DEPTH, -1, -1):
        text = _Types(schema if root is None else root).text(schema, depth)
        if len(text) <= MAX_TEXT:
            return text
    return "Any"


def as_schema(value: Any) -> Schema:
    """Return *value* if it is a schema with keywords, else an empty one, which allows anything."""
    return cast("Schema", value) if isinstance(value, Mapping) else {}


def schemas(value: Any) -> list[Any]:
    """Return the schemas of a list of them."""
    return [*cast("Sequence[Any]", value)] if isinstance(value, list | tuple) else []


def resolve(root: Any, reference: Any) -> Any:
    """Return the target of a reference inside *root*, or nothing; other addresses are never looked up."""
    if reference == "#":
        return root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found: Any = root
    for step in reference[2:].split("/")[:64]:
        name = step.replace("~1", "/").replace("~0", "~").replace("%24", "$")
        if isinstance(found, Mapping):
            found = cast("Schema", found).get(name)
        elif isinstance(found, list) and name.isdecimal() and int(name[:6]) < len(cast("list[Any]", found)):
            found = cast("list[Any]", found)[int(name[:6])]
        else:
            return None
    return found


class _Types:
    """Writes the types of one schema; what refers to itself, and what is too much, ends as a plain name."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._under_way: list[str] = []
        self._work = MAX_WORK

    def text(self, schema: Any, depth: int) -> str:
        self._work -= 1
        if schema is False:
            return "Never"
        if not isinstance(schema, Mapping) or self._work < 0:
            return "Any"
        found = cast("Schema", schema)
        text = self._own(found, depth)
        return _union([text, "None"]) if found.get("nullable") is True else text

    def _own(self, schema: Schema, depth: int) -> str:
        if "$ref" in schema:
            return self._reference(schema["$ref"], depth)
        if "const" in schema:
            return _literal([schema["const"]])
        if isinstance(schema.get("enum"), list):
            return _literal(schema["enum"])
        for key in ("anyOf", "oneOf"):
            if choices := schemas(schema.get(key)):
                return self._choice(schema, choices, depth)
        if parts := schemas(schema.get("allOf")):
            return self._all(schema, parts, depth)
        return self._write_type(schema, depth)

    def _choice(self, schema: Schema, choices: Sequence[Any], depth: int) -> str:
        text = _union(self.text(choice, depth) for choice in choices)
        # Choices that only say which keys belong together tell less than the schema around them.
        return self._write_type(schema, depth) if text == "Any" or "properties" in schema else text

    def _all(self, schema: Schema, parts: Sequence[Any], depth: int) -> str:
        with self._no_loop(f"allOf {id(parts[0])}") as looped:
            if looped:
                return "dict"
            if len(parts) == 1 and "properties" not in schema:
                return self.text(parts[0], depth)
            merged = merge_object(schema, self._root)
            if merged["properties"]:
                return self._object(merged, depth)
            texts = [text for part in parts if (text := self.text(part, depth)) != "Any"]
            return texts[0] if texts else self._write_type(schema, depth)

    @contextmanager
    def _no_loop(self, what: str) -> Generator[bool]:
        looped = what in self._under_way
        self._under_way.append(what)
        try:
            yield looped
        finally:
            self._under_way.pop()

    def _reference(self, reference: Any, depth: int) -> str:
        target = resolve(self._root, reference)
        with self._no_loop(str(reference)[:200]) as looped:
            if not looped:
                return self.text(target, depth)
        kind = as_schema(target).get("type")
        return NAMES.get(kind, "dict") if isinstance(kind, str) else "dict"

    def _write_type(self, schema: Schema, depth: int) -> str:
        kind = schema.get("type")
        if isinstance(kind, list | tuple):
            return _union(self._of_kind(one, schema, depth) for one in cast("Sequence[Any]", kind)[:8])
        if kind is None:
            kind = "object" if "properties" in schema else "array" if "items" in schema else None
        return self._of_kind(kind, schema, depth)

    def _of_kind(self, kind: Any, schema: Schema, depth: int) -> str:
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            item = self.text(schema.get("items", True), depth - 1) if depth > 0 else "Any"
            return "list" if item == "Any" else f"list[{item}]"
        return NAMES.get(kind, "Any") if isinstance(kind, str) else "Any"

    def _object(self, schema: Schema, depth: int) -> str:
        properties = as_schema(schema.get("properties"))
        if properties and depth > 0:
            return self._keys(schema, properties, depth)
        more = schema.get("additionalProperties")
        if not properties and isinstance(more, Mapping) and depth > 0:
            value = self.text(more, depth - 1)
            return "dict" if value == "Any" else f"dict[str, {value}]"
        return "dict"

    def _keys(self, schema: Schema, properties: Schema, depth: int) -> str:
        required = schema.get("required")
        needed: Sequence[Any] = cast("Sequence[Any]", required) if isinstance(required, list | tuple) else ()
        shown = [
            f"{key_text(name)}{'' if name in needed else '?'}: {self.text(part, depth - 1)}"
            for name, part in list(properties.items())[:MAX_KEYS]
        ]
        return "{" + ", ".join(shown + ["..."] * (len(properties) > MAX_KEYS)) + "}"


def key_text(name: str) -> str:
    """Return a key as it is shown: bare when it is a name."""
    clean = clean_line(name, MAX_VALUE)
    return clean if clean.isidentifier() else repr(clean)


def merge_object(schema: Any, root: Any) -> dict[str, Any]:
    """Return ``properties`` and ``required`` of an object, those of its references and ``allOf`` parts included.

    Properties that only some of its choices have are there too, as optional ones.
    """
    properties, required = _merge(schema, root, iter(range(MAX_PARTS)), MAX_DEPTH)
    return {"type": "object", "properties": properties, "required": list(dict.fromkeys(required))}


def _merge(schema: Any, root: Any, left: Iterator[int], depth: int) -> tuple[dict[str, Any], list[str]]:
    found = as_schema(schema)
    properties: dict[str, Any] = {str(name): part for name, part in as_schema(found.get("properties")).items()}
    required = [name for name in schemas(found.get("required")) if isinstance(name, str)]
    if depth < 0 or next(left, None) is None:
        return properties, required
    referred = [resolve(root, found["$ref"])] if "$ref" in found else []
    for part in [*referred, *schemas(found.get("allOf"))]:
        more, needed = _merge(part, root, left, depth - 1)
        properties |= {name: part for name, part in more.items() if name not in properties}
        required += needed
    for part in [*schemas(found.get("anyOf")), *schemas(found.get("oneOf"))]:
        more, _ = _merge(part, root, left, depth - 1)
        properties |= {name: part for name, part in more.items() if name not in properties}
    return properties, required


def _union(texts: Iterable[str]) -> str:
    parts = dict.fromkeys(part for text in texts for part in _alternatives(text))
    if "Any" in parts or not parts:
        return "Any"
    some = [part for part in parts if part != "None"][:MAX_CHOICES]
    return " | ".join([*some, *["None"] * ("None" in parts)])


def _alternatives(text: str) -> list[str]:
    # Only a union of our own that stands alone is taken apart: its last part may be None.
    return [text.removesuffix(" | None"), "None"] if text.endswith(" | None") else [text]


def _literal(values: Sequence[Any]) -> str:
    simple = [value for value in values[: MAX_CHOICES + 1] if isinstance(value, str | int | float | bool)]
    shown = [repr(clean_line(value, MAX_VALUE) if isinstance(value, str) else value) for value in simple]
    others = ["None"] if None in values[:200] else []
    if not shown:
        return others[0] if others and len(values) == 1 else "Any"
    more = ["..."] if len(values) - len(others) > MAX_CHOICES else []
    return _union([f"Literal[{', '.join([*shown[:MAX_CHOICES], *more])}]", *others])


def parameters_of_schema(schema: Any) -> tuple[tuple[Parameter, ...], Mapping[str, str]]:
    """Return the parameters, required ones first, and the original names of those that had to be renamed."""
    merged = merge_object(schema, schema)
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
