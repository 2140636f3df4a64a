"""ToolDefinitions: tools as the APIs of model providers want to be told of them."""

from __future__ import annotations

import ast
import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, cast

from ot.registry.proxy_target import PROXY, ProxyTarget
from ot.registry.schema_types import as_schema, merge_object, resolve, schemas
from ot.registry.tool import Parameter, Tool, signature_text
from ot.registry.tool_registry import ToolRegistry

Schema = dict[str, Any]

SIMPLE: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
}
LISTS = frozenset({"list", "List", "Sequence", "Iterable", "Collection", "set", "Set", "frozenset", "tuple", "Tuple"})
DICTS = frozenset({"dict", "Dict", "Mapping", "MutableMapping"})
MAX_DEPTH = 20
"""Types inside each other that are looked at."""
MAX_NAME = 64
MAX_DESCRIPTION = 1024
MARKED = re.compile(r"_[0-9a-f]{12}$")
REFUSED = ("anyOf", "oneOf", "allOf", "not", "$ref")
"""Words that providers refuse at the top of a schema."""


@dataclass(frozen=True)
class ToolDefinition:
    """One tool as a model sees it: a name of letters, digits, _ and -, words, and a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    def for_anthropic(self) -> dict[str, Any]:
        """Return it as Anthropic's Messages API has it."""
        return {"name": self.name, "description": self.description, "input_schema": dict(self.parameters)}

    def for_completions(self) -> dict[str, Any]:
        """Return it as Ollama and OpenAI's chat completions have it, in words that any server behind them knows."""
        function = {"name": self.name, "description": self.description, "parameters": plain_schema(self.parameters)}
        return {"type": "function", "function": function}


class ToolDefinitions:
    """The definitions of some tools, and the way back from a definition's name to its tool."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Define *tools*; names are the same whatever their order."""
        self._tools = tuple(tools)

    @classmethod
    def choose(cls, registry: ToolRegistry, patterns: Sequence[str] = ("*",)) -> ToolDefinitions:
        """Define the tools whose ``pack.name``, or whose pack, fits one of the patterns."""
        names = ((tool, (tool.full_name, tool.pack)) for tool in registry.tools())
        return cls(tool for tool, known in names if any(fnmatchcase(name, p) for name in known for p in patterns))

    @cached_property
    def by_name(self) -> Mapping[str, Tool]:
        """The tools under the names that a model calls them by."""
        plain = [f"{tool.pack}_{tool.name}" for tool in self._tools]
        counts = Counter(plain)
        return {
            _name(tool, name, unique=counts[name] == 1): tool for tool, name in zip(self._tools, plain, strict=True)
        }

    @cached_property
    def all(self) -> tuple[ToolDefinition, ...]:
        """A definition for each tool."""
        return tuple(
            ToolDefinition(name, _description(tool), parameters_schema(tool)) for name, tool in self.by_name.items()
        )


def run_definition(description: str) -> ToolDefinition:
    """Return the definition of the one tool ``run``, for a model that writes programs."""
    command = {"type": "string", "description": "The Python program"}
    schema = {"type": "object", "properties": {"command": command}, "required": ["command"]}
    return ToolDefinition("run", description, {**schema, "additionalProperties": False})


def parameters_schema(tool: Tool) -> Schema:
    """Return the JSON schema of a tool's arguments: its own, or one made from its signature."""
    if tool.input_schema is not None:
        return _own_schema(tool, tool.input_schema)
    named = [parameter for parameter in tool.parameters if parameter.kind not in ("args", "kwargs")]
    described = _describe_parameters(tool)
    return {
        "type": "object",
        "properties": {parameter.name: _property(parameter, described) for parameter in named},
        "required": [parameter.name for parameter in named if parameter.required],
        "additionalProperties": any(parameter.kind == "kwargs" for parameter in tool.parameters),
    }


def _own_schema(tool: Tool, schema: Mapping[str, Any]) -> Schema:
    """Return *schema* as providers take it, with the names of its parameters by which the door knows them."""
    names: Mapping[str, str] = ProxyTarget.of(tool.target).names if tool.source.startswith(PROXY) else {}
    known = {original: name for name, original in names.items()}
    own = {key: value for key, value in schema.items() if key not in REFUSED}
    # What the words that are left out say about parameters is said here.
    merged = merge_object(schema, schema)
    own |= {
        "type": "object",
        "properties": {known.get(name, name): part for name, part in merged["properties"].items()},
    }
    return own | ({"required": [known.get(name, name) for name in merged["required"]]} if merged["required"] else {})


def possible_names(pack: str, name: str) -> tuple[str, str]:
    """Return the names that a tool may be defined under: the plain one, and the one with a mark."""
    plain = f"{pack}_{name}"
    return plain, _mark_name(f"{pack}.{name}", plain)


def _name(tool: Tool, plain: str, *, unique: bool) -> str:
    legal = re.sub(r"[^a-zA-Z0-9_-]", "_", plain)
    if unique and legal == plain and len(plain) <= MAX_NAME and not MARKED.search(plain):
        return plain
    return _mark_name(tool.full_name, plain)


def _mark_name(full_name: str, plain: str) -> str:
    # `a_b.c` and `a.b_c` would be one name; a piece of the full name's hash tells them apart, the same at every start.
    # A name that looks marked gets a mark, too: no server can offer a tool under the marked name of another's.
    mark = hashlib.sha256(full_name.encode(errors="replace")).hexdigest()[:12]
    legal = re.sub(r"[^a-zA-Z0-9_-]", "_", plain)
    return f"{legal[: MAX_NAME - 13]}_{mark}"


def _description(tool: Tool) -> str:
    text = tool.description or signature_text(tool)
    return text if len(text) <= MAX_DESCRIPTION else text[: MAX_DESCRIPTION - 3] + "..."


def _describe_parameters(tool: Tool) -> dict[str, str]:
    """Return each parameter's description: its own, or the docstring's."""
    from griffe import Docstring, DocstringSectionKind, Parser  # noqa: PLC0415 - only definitions need it, at 90 ms

    found = {parameter.name: parameter.description for parameter in tool.parameters if parameter.description}
    if not found and "Args:" in tool.doc:
        for section in Docstring(tool.doc).parse(Parser.google, warnings=False):
            if section.kind is DocstringSectionKind.parameters:
                found |= {argument.name: " ".join(argument.description.split()) for argument in section.value}
    return found


def _property(parameter: Parameter, described: Mapping[str, str]) -> Schema:
    schema = schema_of_annotation(parameter.annotation)
    if text := described.get(parameter.name):
        schema["description"] = text
    return schema | _default(parameter)


def _default(parameter: Parameter) -> Schema:
    try:
        value = ast.literal_eval(parameter.default) if parameter.default is not None else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return {}
    # None says only that it may be left out, which `required` says already.
    fit = isinstance(value, str | int | bool) or (isinstance(value, float) and math.isfinite(value))
    return {"default": value} if fit else {}


def schema_of_annotation(annotation: str) -> Schema:
    """Return the JSON schema of a type; an empty one, which allows everything, where it is not known."""
    try:
        return _schema(ast.parse(annotation.replace("?: ", ": "), mode="eval").body, 0) if annotation else {}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _schema(node: ast.expr, depth: int) -> Schema:
    if depth > MAX_DEPTH:
        return {}
    match node:
        case ast.Constant(value=None):
            return dict(SIMPLE["None"])
        case ast.Constant(value=str(text)):
            return _schema(ast.parse(text, mode="eval").body, depth + 1)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _any_of([_schema(left, depth + 1), _schema(right, depth + 1)])
        case ast.Subscript(value=value, slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _generic(_last_name(value), parts, depth + 1)
        case _:
            return _plain(_last_name(node))


def _last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name: ``typing.Literal`` is ``Literal``."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _plain(name: str) -> Schema:
    if name in LISTS:
        return {"type": "array"}
    return {"type": "object"} if name in DICTS else dict(SIMPLE.get(name, {}))


def _generic(name: str, parts: list[ast.expr], depth: int) -> Schema:
    if name in ("tuple", "Tuple") and not (len(parts) == 2 and isinstance(parts[1], ast.Constant)):
        return {"type": "array"}
    if name in LISTS:
        return _with("array", "items", _schema(parts[0], depth))
    if name in DICTS:
        return _with("object", "additionalProperties", _schema(parts[-1], depth))
    special: dict[str, Callable[[], Schema]] = {
        "Literal": lambda: _literal(parts),
        "Optional": lambda: _any_of([_schema(parts[0], depth), dict(SIMPLE["None"])]),
        "Union": lambda: _any_of([_schema(part, depth) for part in parts]),
        "Annotated": lambda: _schema(parts[0], depth),
    }
    return special[name]() if name in special else {}


def _with(type: str, key: str, inner: Schema) -> Schema:
    return {"type": type, key: inner} if inner else {"type": type}


def _literal(parts: list[ast.expr]) -> Schema:
    values = [ast.literal_eval(part) for part in parts]
    return {"enum": values} if all(value is None or isinstance(value, str | int | bool) for value in values) else {}


def _any_of(schemas: list[Schema]) -> Schema:
    if not all(schemas):
        return {}
    flat = [part for schema in schemas for part in schema.get("anyOf", [schema])]
    unique = [schema for index, schema in enumerate(flat) if schema not in flat[:index]]
    return unique[0] if len(unique) == 1 else {"anyOf": unique}


# ---------------------------------------------------------------- a schema for small models

MAX_PARTS = 2000
"""Parts that are written out; a schema that needs more ends in parts that allow anything."""
SCHEMA_DEPTH = 20
NULL = {"type": "null"}


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return *schema* with references written out, ``const`` as ``enum``, and nothing said of null."""
    return _Plain(schema).of(schema, SCHEMA_DEPTH)


class _Plain:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left: Iterator[int] = iter(range(MAX_PARTS))

    def of(self, schema: Any, depth: int) -> dict[str, Any]:
        if depth < 0 or next(self._left, None) is None:
            return {}
        found = {key: value for key, value in as_schema(schema).items() if key not in ("$defs", "definitions")}
        if "$ref" in found:
            referred = self.of(resolve(self._root, found.pop("$ref")), depth - 1)
            return referred | self.of(found, depth - 1)
        if "const" in found:
            found["enum"] = [found.pop("const")]
        kinds = [kind for kind in schemas(found.get("type")) if kind != "null"]
        found |= {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
        return self._parts(found, depth - 1)

    def _parts(self, found: dict[str, Any], depth: int) -> dict[str, Any]:
        for key in ("items", "additionalProperties"):
            if isinstance(found.get(key), Mapping):
                found[key] = self.of(found[key], depth)
        for key in ("properties", "patternProperties"):
            if isinstance(found.get(key), Mapping):
                found[key] = {name: self.of(part, depth) for name, part in as_schema(found[key]).items()}
        if "allOf" in found:
            found["allOf"] = [self.of(part, depth) for part in schemas(found["allOf"])]
        return self._choices(found, depth)

    def _choices(self, found: dict[str, Any], depth: int) -> dict[str, Any]:
        """Return *found* with its choices under one word; a single one that is left is no choice."""
        given = [*schemas(found.pop("anyOf", None)), *schemas(found.pop("oneOf", None))]
        parts = [self.of(part, depth) for part in given if part != NULL]
        if len(parts) == 1:
            return parts[0] | found
        enums = [as_schema(part).get("enum") for part in parts]
        if parts and all(enums):
            values = [value for enum in enums for value in cast("list[Any]", enum)]
            return {**parts[0], "enum": values} | found
        return found | ({"anyOf": parts} if parts else {})
