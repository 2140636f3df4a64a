"""SchemaCheck: whether a call's arguments are what the tool's input schema asks for, before anything is sent."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Protocol, cast

import anyio.to_thread

from ot.errors import InvalidArguments
from ot.execution.json_arguments import NotJson, json_value
from ot.execution.schema_words import words_of_error
from ot.registry.proxy_target import ProxyTarget
from ot.registry.schema_types import as_schema, resolve, schemas
from ot.registry.signature import signature_text
from ot.registry.tool import Tool

logger = logging.getLogger(__name__)

MAX_KEPT = 500
QUICK_NODES = 2_000
"""Parts of arguments that are looked at on the event loop."""
MAX_NODES = 200_000
"""Parts of arguments that are looked at; the server checks what is larger."""
MAX_UNFOLDED = 200_000
"""Parts of a schema once its references are written out: a few lines can unfold to billions."""
MAX_PATTERNS = 500
MAX_ERRORS = 3
BACKTRACK_LIMIT = 10_000
PATTERN_BYTES = 1 << 20
BESIDE_THE_POINT = frozenset({"BacktrackLimitExceeded", "RegexEngineFailure"})
"""Errors that tell of the check itself and not of the arguments."""


class Validator(Protocol):
    """Finds what is wrong with a value."""

    def iter_errors(self, instance: Any) -> Iterator[Any]:
        """Yield the errors."""
        ...


class SchemaCheck:
    """Checks arguments, with one validator a tool, made when it is first called."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Mapping[str, Any], Validator | None]] = OrderedDict()

    async def checked(self, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return *arguments* as JSON has them; much of them is looked at in a thread.

        Raises:
            InvalidArguments: They are not what the schema asks for; the text says which and what was wrong.
        """
        if tool.input_schema is None:
            return arguments
        validator = await self._validator(tool, tool.input_schema)
        if _is_large(arguments, QUICK_NODES):
            return await anyio.to_thread.run_sync(self._check, tool, arguments, validator, abandon_on_cancel=True)
        return self._check(tool, arguments, validator)

    def _check(self, tool: Tool, arguments: dict[str, Any], validator: Validator | None) -> dict[str, Any]:
        plain = {name: self._plain(tool, name, value) for name, value in arguments.items()}
        if validator is not None and not _is_large(plain, MAX_NODES):
            self._require_valid(tool, validator, plain)
        return plain

    def _plain(self, tool: Tool, name: str, value: Any) -> Any:
        try:
            return json_value(value)
        except NotJson as error:
            raise _invalid(tool, f"argument '{name}{error.where}' {error.what}: {error.hint}") from None

    def _require_valid(self, tool: Tool, validator: Validator, arguments: Mapping[str, Any]) -> None:
        target = ProxyTarget.of(tool.target)
        known = {original: name for name, original in target.names.items()}
        found = (error for error in validator.iter_errors(target.sent(arguments)) if not _is_own(error))
        wrong = [words_of_error(error, known) for error in islice(found, MAX_ERRORS)]
        if wrong:
            raise _invalid(tool, "; ".join(dict.fromkeys(wrong)))

    async def _validator(self, tool: Tool, schema: Mapping[str, Any]) -> Validator | None:
        kept = self._kept.get(tool.full_name)
        if kept is not None and kept[0] is schema:
            self._kept.move_to_end(tool.full_name)
            return kept[1]
        built = await anyio.to_thread.run_sync(build_validator, tool.full_name, schema, abandon_on_cancel=True)
        self._kept[tool.full_name] = (schema, built)
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        return built


def build_validator(name: str, schema: Mapping[str, Any]) -> Validator | None:
    """Return a validator of *schema* that looks nothing up elsewhere, or nothing when none can be made of it."""
    import jsonschema_rs  # noqa: PLC0415 - 20 ms that only calls of proxied servers pay

    if why := _costly(schema):
        logger.warning("arguments of %s are checked by name alone: %s", name, why)
        return None
    # What a schema calls itself is not asked: an unknown address there is no reason to check nothing.
    plain = {key: value for key, value in schema.items() if key not in ("$schema", "$id")}
    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT, size_limit=PATTERN_BYTES)
    problem = ""
    for kind in (jsonschema_rs.Draft202012Validator, jsonschema_rs.Draft7Validator):
        try:
            return kind(plain, validate_formats=False, pattern_options=patterns, offline=True)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            problem = str(error).split("\n", 1)[0][:200]
    logger.warning("arguments of %s are checked by name alone: its schema cannot be used: %s", name, problem)
    return None


def _costly(schema: Mapping[str, Any]) -> str:
    counter = _Unfolding(schema)
    if counter.size(schema) > MAX_UNFOLDED:
        return f"its schema unfolds to more than {MAX_UNFOLDED:,} parts"
    return f"its schema has more than {MAX_PATTERNS} patterns" if counter.patterns > MAX_PATTERNS else ""


class _Unfolding:
    """Counts the parts of a schema with every reference written out; one that leads back to itself counts once."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._sizes: dict[str, int] = {}
        self.patterns = 0

    def size(self, part: Any) -> int:
        if isinstance(part, list | tuple):
            return sum(map(self.size, schemas(part)))
        if not isinstance(part, Mapping):
            return 0
        found = as_schema(part)
        self.patterns += "pattern" in found or "patternProperties" in found
        own = 1 + sum(self.size(value) for value in found.values())
        return own + (self._referred(found["$ref"]) if isinstance(found.get("$ref"), str) else 0)

    def _referred(self, reference: str) -> int:
        if reference not in self._sizes:
            self._sizes[reference] = 0
            self._sizes[reference] = min(self.size(resolve(self._root, reference)), MAX_UNFOLDED + 1)
        return self._sizes[reference]


def _is_large(value: Any, limit: int) -> bool:
    waiting, seen = [value], 0
    while waiting and seen <= limit:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting.extend(cast("dict[str, Any]", part).values())
        elif isinstance(part, list):
            waiting.extend(cast("list[Any]", part))
        seen = max(seen + 1, len(waiting))
    return seen > limit


def _is_own(error: Any) -> bool:
    return type(error.kind).__name__ in BESIDE_THE_POINT


def _invalid(tool: Tool, message: str) -> InvalidArguments:
    return InvalidArguments(tool.full_name, f"{tool.full_name}() {message}", signature_text(tool))
