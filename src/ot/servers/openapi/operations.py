"""The operations of an OpenAPI document: a name for each, and a document of each one alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

import orjson

from ot.registry.schema_types import DATA

METHODS = ("get", "head", "options", "post", "put", "patch", "delete", "trace")
MAX_NAME = 56
"""As long as FastMCP leaves a name."""
REQUEST = (8192, 5)
RESPONSE = (2048, 2)
"""How many bytes of the shared schemas an operation carries, and how far from itself: where all refer to all, each
would carry all."""
MAX_INLINED = 20
NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keys of a schema whose own keys are names, not words of the language."""
NOISE = frozenset({"example", "examples", "externalDocs", "xml"})
SAID = frozenset({"description", "title", "pattern"})
"""What only a caller needs to know, who has to write such a value."""
SCHEMAS = ("components", "schemas")
PREFERRED = (re.compile(r"application/([\w.-]+\+)?json"), re.compile(r"application/x-www-form-urlencoded"))


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: where it is, under the name of its tool."""

    name: str
    method: str
    path: str
    shared: Sequence[Any]
    """Parameters of all operations at its path."""
    written: Mapping[str, Any]

    @property
    def description(self) -> str:
        """What the document says of it, and the request that it is: another request must show as a change."""
        texts = [str(self.written.get(key) or "").strip() for key in ("summary", "description")]
        marks = ["Deprecated."] if self.written.get("deprecated") is True else []
        said = dict.fromkeys(text for text in texts if text)
        return "\n\n".join([*marks, *said, f"{self.method.upper()} {self.path}"])


class Operations(Mapping[str, Operation]):
    """All operations of a document by the names of their tools."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Name the operations; nothing else of *document* is looked at yet."""
        self._document = document
        self._by_name: dict[str, Operation] = {}
        self._expanded: dict[tuple[str, frozenset[str]], _Expanded] = {}
        for path, method, shared, written in _listed(document):
            name = _free(_name(method, path, str(written.get("operationId") or "")), self._by_name)
            self._by_name[name] = Operation(name, method, path, shared, written)

    def __getitem__(self, name: str) -> Operation:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def alone(self, name: str) -> dict[str, Any]:
        """Return a document of that operation and the schemas that it needs, those farthest from it left open.

        Raises:
            ValueError: It refers to something that is not there.
        """
        operation = self[name]
        request, response = _References(self._document), _References(self._document, NOISE | SAID)
        kept = {
            "operationId": name,
            "description": operation.description,
            "parameters": [_parameter(request, part) for part in _parameters(request, operation)],
            **_body(request, operation.written.get("requestBody")),
            "responses": dict(_responses(response, _mapping(operation.written.get("responses")))),
        }
        schemas = {**self._schemas(response, *RESPONSE), **self._schemas(request, *REQUEST)}
        return {
            "openapi": str(self._document.get("openapi")),
            "info": {"title": name, "version": "1"},
            "paths": {operation.path: {operation.method: kept}},
            "components": {"schemas": schemas},
        }

    def _schemas(self, wanted: _References, most: int, deepest: int) -> dict[str, Any]:
        """Return the schemas of *wanted* and those that they refer to, nearest first; farther ones are open."""
        found: dict[str, Any] = {}
        waiting = [(name, 1) for name in wanted.names]
        size = 0
        for name, depth in waiting:  # which grows
            if name in found:
                continue
            expanded = self._schema(name, wanted.dropped)
            if found and (depth > deepest or size + expanded.size > most):
                found[name] = {}
                continue
            size += expanded.size
            found[name] = expanded.schema
            waiting += [(inner, depth + 1) for inner in expanded.names]
        return found

    def _schema(self, name: str, dropped: frozenset[str]) -> _Expanded:
        if (name, dropped) not in self._expanded:
            references = _References(self._document, dropped)
            schema = references.expanded(references.target((*SCHEMAS, name)))
            self._expanded[name, dropped] = _Expanded(schema, tuple(references.names), len(orjson.dumps(schema)))
        return self._expanded[name, dropped]


@dataclass(frozen=True, slots=True)
class _Expanded:
    schema: Any
    names: tuple[str, ...]
    size: int


class _References:
    """Puts what a part of a document refers to in its place, all but schemas, whose names it collects."""

    def __init__(self, document: Mapping[str, Any], dropped: frozenset[str] = NOISE) -> None:
        self.names: dict[str, None] = {}
        self.dropped = dropped
        self._document = document
        self._depth = 0

    def expanded(self, value: Any, *, of_names: bool = False) -> Any:
        """Return a copy of *value* whose references all lead to schemas by name; with *of_names* its keys are names."""
        if isinstance(value, list):
            return [self.expanded(part) for part in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        given = cast("dict[str, Any]", value)
        if of_names:
            return {key: self.expanded(part) for key, part in given.items()}
        if isinstance(pointer := given.get("$ref"), str):
            return self._referred(pointer, {key: part for key, part in given.items() if key != "$ref"})
        return self._with(given)

    def _referred(self, pointer: str, beside: Mapping[str, Any]) -> Any:
        parts = _parts(pointer)
        if parts[:2] == SCHEMAS and len(parts) == 3:
            self.names[parts[2]] = None
            return {"$ref": "#/" + "/".join(parts), **self._with(beside)}
        found = self.target(parts)
        if self._depth > MAX_INLINED:
            return {}
        self._depth += 1
        try:
            inlined = self.expanded(found)
        finally:
            self._depth -= 1
        return {**inlined, **self._with(beside)} if isinstance(inlined, dict) else inlined

    def _with(self, beside: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: part if key in DATA else self.expanded(part, of_names=key in NAMED)
            for key, part in beside.items()
            if key not in self.dropped and not key.startswith("x-")
        }

    def target(self, parts: Sequence[str]) -> Any:
        """Return what is at that place of the document."""
        found: Any = self._document
        for part in parts:
            if isinstance(found, list) and part.isdigit() and int(part) < len(cast("list[Any]", found)):
                found = found[int(part)]
            elif isinstance(found, Mapping) and part in found:
                found = cast("Mapping[str, Any]", found)[part]
            else:
                raise ValueError(f"it refers to #/{'/'.join(parts)}, which is not there")
        return found

    def resolved(self, value: Any) -> Mapping[str, Any]:
        """Return *value*, or what it refers to, as a mapping."""
        for _ in range(MAX_INLINED):
            pointer = _mapping(value).get("$ref")
            if not isinstance(pointer, str):
                break
            value = self.target(_parts(pointer))
        return _mapping(value)


def _parts(pointer: str) -> tuple[str, ...]:
    if not pointer.startswith("#/"):
        advice = "put everything into one file, for example with 'npx @redocly/cli bundle'"
        raise ValueError(f"it refers to {pointer[:100]}, which is another document: {advice}")
    return tuple(unquote(part).replace("~1", "/").replace("~0", "~") for part in pointer[2:].split("/"))


# ---------------------------------------------------------------- names


def _listed(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Sequence[Any], Mapping[str, Any]]]:
    references = _References(document)
    for path, given in _mapping(document.get("paths")).items():
        item = references.resolved(given)
        for method in METHODS:
            if isinstance(written := item.get(method), Mapping):
                yield str(path), method, _sequence(item.get("parameters")), cast("Mapping[str, Any]", written)


def _name(method: str, path: str, given: str) -> str:
    # Frameworks make an id of the function's name, the path and the method: the function's name says enough.
    own = given.removesuffix(re.sub(r"\W", "_", f"{path} {method}"))
    return _slug(own) or _slug(f"{method} {path}") or method


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text)[:MAX_NAME].strip("_")


def _free(name: str, taken: Mapping[str, Any]) -> str:
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name[: MAX_NAME - 5]}_{number}"
    return free


# ---------------------------------------------------------------- parts of an operation


def _parameters(references: _References, operation: Operation) -> Iterable[Mapping[str, Any]]:
    """Return the parameters of its path and its own, which stand in for those of the same name and place."""
    given = [references.resolved(part) for part in (*operation.shared, *_sequence(operation.written.get("parameters")))]
    return {(part.get("name"), part.get("in")): part for part in given}.values()


def _parameter(references: _References, given: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in given.items() if key in ("name", "in", "required", "style", "explode")}
    marks = "Deprecated. " if given.get("deprecated") is True else ""
    kept["description"] = marks + str(given.get("description") or "")
    media = next(iter(_mapping(given.get("content")).values()), {})
    kept["schema"] = references.expanded(given.get("schema") or _mapping(media).get("schema") or {})
    if given.get("in") == "path":
        kept["required"] = True
    return kept


def _body(references: _References, given: Any) -> dict[str, Any]:
    body = references.resolved(given)
    content = _mapping(body.get("content"))
    if not content:
        return {}
    kind = _preferred(content)
    media = _mapping(content[kind])
    kept = {key: references.expanded(media[key]) for key in ("schema", "encoding") if key in media}
    described = {"description": str(body["description"])} if body.get("description") else {}
    return {"requestBody": {"required": body.get("required") is True, **described, "content": {kind: kept}}}


def _responses(references: _References, given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what says that it went well: a failure's body is told as it comes."""
    for status, part in given.items():
        if str(status).startswith("2"):
            content = _mapping(references.resolved(part).get("content"))
            kind = _preferred(content) if content else ""
            schema = _mapping(content[kind]).get("schema") if kind else None
            shown = {"content": {kind: {"schema": references.expanded(schema)}}} if schema else {}
            yield str(status), {"description": "", **shown}
            return
    yield "default", {"description": ""}


def _preferred(content: Mapping[str, Any]) -> str:
    return next((kind for form in PREFERRED for kind in content if form.match(kind)), next(iter(content)))


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()
