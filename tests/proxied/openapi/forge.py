"""The document of a large API as a vendor generates it: 1,000 operations, ids with slashes, schemas in circles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

THINGS = [
    "repository", "branch", "commit", "tag", "release", "issue", "comment", "label", "milestone", "pull_request",
    "review", "check", "deployment", "environment", "secret", "variable", "runner", "workflow", "artifact",
    "cache", "package", "webhook", "team", "member", "invitation", "project", "column", "card", "topic", "license",
    "gist", "star", "watch", "fork", "page", "domain", "certificate", "alert", "advisory", "rule",
]  # fmt: skip
PLACES = ("organization", "user", "enterprise", "repository", "project")
VERBS = {"list": "get", "get": "get", "create": "post", "update": "put", "delete": "delete"}


def forge() -> dict[str, Any]:
    """Return the document."""
    paths: dict[str, dict[str, Any]] = {}
    for name, method, path, operation in _operations():
        paths.setdefault(path, {})[method] = {"operationId": name, **operation}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Forge", "version": "1.1.4"},
        "servers": [{"url": "https://forge.invalid/api"}],
        "paths": paths,
        "components": {"schemas": dict(_schemas())},
    }


OK = {"description": "Response"}


def _operations() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    for place in PLACES:
        for thing in THINGS:
            words, base = thing.replace("_", " "), f"/{place}s/{{{place}}}/{thing}s"
            for verb, method in VERBS.items():
                one = verb in ("get", "update", "delete")
                yield (
                    f"{place}s/{verb}-{thing.replace('_', '-')}{'s' * (verb == 'list')}",
                    method,
                    f"{base}/{{id}}" if one else base,
                    _operation(verb, words, place, thing, one),
                )


def _operation(verb: str, words: str, place: str, thing: str, one: bool) -> dict[str, Any]:
    names = [place, *(["id"] if one else [])]
    schema = {"$ref": f"#/components/schemas/{thing}"}
    answer = {"type": "array", "items": schema} if verb == "list" else schema
    body = {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
    return {
        "summary": f"{verb.title()} {'all' if verb == 'list' else 'a'} {words}{'s' * (verb == 'list')} of the {place}",
        "parameters": [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names],
        **(body if verb in ("create", "update") else {}),
        "responses": {"200": {**OK, "content": {"application/json": {"schema": answer}}}},
    }


def _schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield schemas that all lead to all others, as those of large APIs do."""
    for at, thing in enumerate(THINGS):
        following = THINGS[(at + 1) % len(THINGS)]
        properties = {
            "name": {"type": "string", "nullable": True},
            "kind": {"type": "string", "enum": ["public", "private"]},
            following: {"$ref": f"#/components/schemas/{following}"},
        }
        yield thing, {"type": "object", "properties": properties}
