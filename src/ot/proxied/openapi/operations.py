"""The operations of an OpenAPI document: a name for each, and a document of each one alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

import orjson

from ot.proxied.openapi.references import NOISE, SCHEMAS, References, as_list
from ot.registry.clean_text import clean_line
from ot.registry.schema_types import as_schema

METHODS = ("get", "head", "options", "post", "put", "patch", "delete", "trace")
MAX_NAME = 56
"""As long as FastMCP leaves a name."""
REQUEST = (8192, 5)
RESPONSE = (2048, 2)
"""How many bytes of the shared schemas an operation carries, and how far from itself: where all refer to all, each
would carry all."""
SAID = frozenset({"description", "title", "pattern"})
"""What only a caller needs, who has to write the value."""
OURS = (
    *("authorization", "connection", "content-length", "content-type", "cookie", "expect", "host", "keep-alive"),
    *("proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
)
"""Headers that say who asks, or where a request goes and where it ends: no document chooses them."""
MAX_DECODINGS = 32
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

    def __init__(self, document: Mapping[str, Any], headers: Collection[str] = (), query: Collection[str] = ()) -> None:
        """Name the operations; nothing else of *document* is looked at yet.

        Parameters that would replace *headers* and parts of the *query* that go with every request are left out.
        """
        self._document = document
        self._headers = frozenset(map(_spelling, headers))
        self._query = frozenset(query)
        self._by_name: dict[str, Operation] = {}
        self._expanded: dict[tuple[str, frozenset[str]], _Expanded] = {}
        self.left_out: dict[str, str] = {}
        """Why nothing at a path can be used, by the path."""
        numbers: dict[str, int] = {}
        for path, method, shared, written in _list_operations(document, self.left_out):
            name = _free(_name(method, path, str(written.get("operationId") or "")), self._by_name, numbers)
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
        request, response = References(self._document), References(self._document, NOISE | SAID)
        kept = {
            "operationId": name,
            "description": operation.description,
            "parameters": [
                _parameter(request, part) for part in _parameters(request, operation) if not self._is_ours(part)
            ],
            **_body(request, operation.written.get("requestBody")),
            "responses": dict(_responses(response, as_schema(operation.written.get("responses")))),
        }
        schemas = {**self._schemas(response, *RESPONSE), **self._schemas(request, *REQUEST)}
        return {
            "openapi": str(self._document.get("openapi")),
            "info": {"title": name, "version": "1"},
            "paths": {operation.path: {operation.method: kept}},
            "components": {"schemas": schemas},
        }

    def _is_ours(self, parameter: Mapping[str, Any]) -> bool:
        name = str(parameter.get("name"))
        match parameter.get("in"):
            case "header":
                return _spelling(name) in self._headers or _spelling(name) in OURS
            case "cookie":
                return "cookie" in self._headers
            case "query":
                return name in self._query
            case _:
                return False

    def _schemas(self, wanted: References, most: int, deepest: int) -> dict[str, Any]:
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
            references = References(self._document, dropped)
            schema = references.expand(references.target((*SCHEMAS, name)))
            self._expanded[name, dropped] = _Expanded(schema, tuple(references.names), len(orjson.dumps(schema)))
        return self._expanded[name, dropped]


@dataclass(frozen=True, slots=True)
class _Expanded:
    schema: Any
    names: tuple[str, ...]
    size: int


# ---------------------------------------------------------------- names


def _list_operations(
    document: Mapping[str, Any], left_out: dict[str, str]
) -> Iterator[tuple[str, str, Sequence[Any], Mapping[str, Any]]]:
    references = References(document)
    for path, given in as_schema(document.get("paths")).items():
        try:
            item = references.resolve(given)
        except ValueError as error:
            left_out[clean_line(str(path), 100)] = clean_line(str(error), 400)
            continue
        if leads_up(str(path)):
            left_out[clean_line(str(path), 100)] = "its path leads out of the address of the API"
            continue
        for method in METHODS:
            if isinstance(written := item.get(method), Mapping):
                yield str(path), method, as_list(item.get("parameters")), cast("Mapping[str, Any]", written)


def leads_up(path: str) -> bool:
    """Return whether a server may read ``..`` in *path*, however often it is encoded."""
    for _ in range(MAX_DECODINGS):
        if ".." in path.replace("\\", "/").split("/"):
            return True
        path, before = unquote(path), path
        if path == before:
            return False
    return True


def _spelling(header: str) -> str:
    # Some servers take both characters for the same one.
    return header.strip().lower().replace("_", "-")


def _name(method: str, path: str, given: str) -> str:
    # Frameworks make an id of the function's name, the path and the method: the function's name says enough.
    own = given.removesuffix(re.sub(r"\W", "_", f"{path} {method}"))
    return _slug(own) or _slug(f"{method} {path}") or method


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text)[:MAX_NAME].strip("_")


def _free(name: str, taken: Mapping[str, Any], numbers: dict[str, int]) -> str:
    """Return *name*, or one with a number that is free; *numbers* are the last ones, so that none is tried again."""
    free, start = name, name[: MAX_NAME - 5]
    while free in taken:
        numbers[start] = numbers.get(start, 1) + 1
        free = f"{start}_{numbers[start]}"
    return free


# ---------------------------------------------------------------- parts of an operation


def _parameters(references: References, operation: Operation) -> Iterable[Mapping[str, Any]]:
    """Return the parameters of its path and its own, which stand in for those of the same name and place."""
    given = [references.resolve(part) for part in (*operation.shared, *as_list(operation.written.get("parameters")))]
    return {(part.get("name"), part.get("in")): part for part in given}.values()


def _parameter(references: References, given: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in given.items() if key in ("name", "in", "required", "style", "explode")}
    marks = "Deprecated. " if given.get("deprecated") is True else ""
    kept["description"] = marks + str(given.get("description") or "")
    media: Any = next(iter(as_schema(given.get("content")).values()), None)
    kept["schema"] = references.expand(given.get("schema") or as_schema(media).get("schema") or {})
    if given.get("in") == "path":
        kept["required"] = True
    return kept


def _body(references: References, given: Any) -> dict[str, Any]:
    body = references.resolve(given)
    content = as_schema(body.get("content"))
    if not content:
        return {}
    kind = _choose_content_type(content)
    media = as_schema(content[kind])
    kept = {key: references.expand(media[key]) for key in ("schema", "encoding") if key in media}
    described = {"description": str(body["description"])} if body.get("description") else {}
    return {"requestBody": {"required": body.get("required") is True, **described, "content": {kind: kept}}}


def _responses(references: References, given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what says that it went well: a failure's body is told as it comes."""
    for status, part in given.items():
        if str(status).startswith("2"):
            content = as_schema(references.resolve(part).get("content"))
            kind = _choose_content_type(content) if content else ""
            schema = as_schema(content[kind]).get("schema") if kind else None
            shown = {"content": {kind: {"schema": references.expand(schema)}}} if schema else {}
            yield str(status), {"description": "", **shown}
            return
    yield "default", {"description": ""}


def _choose_content_type(content: Mapping[str, Any]) -> str:
    return next((kind for form in PREFERRED for kind in content if form.match(kind)), next(iter(content)))
