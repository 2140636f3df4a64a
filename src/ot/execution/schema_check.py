"""SchemaCheck: whether a call's arguments are what the tool asks for, before anything is sent."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, cast

import anyio.to_thread

from ot.execution.annotation_check import require_fit
from ot.execution.arguments import UNSEEN, NotJsonValue, error_text, invalid, json_value
from ot.registry.announced_tool import is_announced
from ot.registry.proxy_target import PROXY, ProxyTarget
from ot.registry.schema_types import DATA, as_schema, resolve, schemas
from ot.registry.tool import Tool

logger = logging.getLogger(__name__)

MAX_KEPT = 500
QUICK_NODES = 2_000
QUICK_TEXT = 64 << 10
"""Parts and characters of arguments that are looked at on the event loop."""
MAX_NODES = 200_000
"""Parts of arguments that are looked at; the server checks what is larger."""
MAX_UNFOLDED = 200_000
"""Parts of a schema once its references are written out: a few lines can unfold to billions."""
MAX_PATTERNS = 20
"""Where there are more, none is looked at: together they could take seconds."""
MAX_ERRORS = 3
PATTERN_BYTES = 128 << 10
"""How large one pattern may become when it is compiled."""
MAX_TEXT = 4 << 10
"""Characters of arguments that are held against patterns; the server checks what is longer."""
NOT_LINEAR = re.compile(r"\(\?<?[=!]|\(\?>|\\[1-9]|\\k|[*+?}]\+|\(\?\(")
"""Looking around, going back to what was found, and the like."""
OTHER_KEYS = ("additionalProperties", "unevaluatedProperties")


class Validator(Protocol):
    """Finds what is wrong with a value."""

    def iter_errors(self, instance: Any) -> Iterator[Any]:
        """Yield the errors."""
        ...


@dataclass(frozen=True, slots=True)
class Validators:
    """What checks the arguments of one tool: as its schema says, and without patterns, for long texts."""

    whole: Validator
    without_patterns: Validator


class SchemaCheck:
    """Checks arguments, with validators made when a tool is first called."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Mapping[str, Any], Validators | None]] = OrderedDict()

    async def check(self, tool: Tool, arguments: dict[str, Any], unseen: Collection[str] = ()) -> dict[str, Any]:
        """Return the *arguments* of a pack as they are, those of a server as JSON has them.

        Of those that are *unseen*, some part is not known yet: the others are checked each by itself.

        Raises:
            InvalidArguments: They are not what the schema or the annotations ask for; the text says which, and why.
        """
        if not tool.source.startswith(PROXY):
            # A typed tool of a pack holds its arguments to its own model, and says so in that model's words.
            if tool.input_schema is None:
                require_fit(tool, arguments)
            else:
                _require_constants(tool, arguments, tool.input_schema)
            return arguments
        if tool.input_schema is None:
            if is_announced(tool):
                require_fit(tool, arguments)
            return arguments
        validators = await self._validators(tool, tool.input_schema)
        if unseen:
            return self._check(tool, {k: v for k, v in arguments.items() if k not in unseen}, validators, alone=True)
        nodes, text = _amount(arguments)
        if nodes > QUICK_NODES or text > QUICK_TEXT:
            return await anyio.to_thread.run_sync(self._check, tool, arguments, validators, abandon_on_cancel=True)
        return self._check(tool, arguments, validators)

    def _check(
        self, tool: Tool, arguments: dict[str, Any], validators: Validators | None, *, alone: bool = False
    ) -> dict[str, Any]:
        plain = {name: self._plain(tool, name, value) for name, value in arguments.items()}
        nodes, text = _amount(plain)
        if validators is not None and nodes <= MAX_NODES:
            validator = validators.whole if text <= MAX_TEXT else validators.without_patterns
            self._require_valid(tool, validator, plain, alone=alone)
        return plain

    def _plain(self, tool: Tool, name: str, value: Any) -> Any:
        try:
            return json_value(value)
        except NotJsonValue as error:
            raise invalid(tool, f"argument '{name}{error.where}' {error.what}: {error.hint}") from None

    def _require_valid(self, tool: Tool, validator: Validator, arguments: Mapping[str, Any], *, alone: bool) -> None:
        target = ProxyTarget.of(tool.target)
        known = {original: name for name, original in target.names.items()}
        errors = validator.iter_errors(target.rename_arguments(arguments))
        if alone:  # only what is asked of one argument, whatever the others are
            errors = (error for error in errors if error.schema_path[:1] == ["properties"])
        wrong = [error_text(error, known) for error in islice(errors, MAX_ERRORS)]
        if wrong:
            raise invalid(tool, "; ".join(dict.fromkeys(wrong)))

    async def _validators(self, tool: Tool, schema: Mapping[str, Any]) -> Validators | None:
        kept = self._kept.get(tool.full_name)
        if kept is not None and kept[0] is schema:
            self._kept.move_to_end(tool.full_name)
            return kept[1]
        built = await anyio.to_thread.run_sync(build_validators, tool.full_name, schema, abandon_on_cancel=True)
        self._kept[tool.full_name] = (schema, built)
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        return built


def _require_constants(tool: Tool, arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Check the arguments that must be one exact word: nobody is asked about a call without it."""
    for name, rule in schema.get("properties", {}).items():
        if "const" in rule and (given := arguments.get(name, UNSEEN)) is not UNSEEN and given != rule["const"]:
            raise invalid(tool, f"{name}: Input should be {rule['const']!r}")


def build_validators(name: str, schema: Mapping[str, Any]) -> Validators | None:
    """Return validators of the arguments of the tool *name*, or None if its *schema* allows none."""
    built = validators_of(schema)
    if isinstance(built, Validators):
        return built
    logger.warning("arguments of %s are checked by name alone: its schema cannot be used: %s", name, built)
    return None


def validators_of(schema: Mapping[str, Any]) -> Validators | str:
    """Return a validator of *schema* that looks up nothing elsewhere, or why there is none."""
    # What a schema calls itself is not asked: an unknown address there is no reason to check nothing.
    named = {key: value for key, value in schema.items() if key not in ("$schema", "$id")}
    counter = _Unfolding(named)
    if counter.size(named) > MAX_UNFOLDED:
        problem = f"it expands to more than {MAX_UNFOLDED:,} parts"
    else:
        lax = linear_schema(named, patterns=False)
        plain = linear_schema(named) if 0 < counter.patterns <= MAX_PATTERNS else lax
        without, problem = _build(lax)
        whole = without if plain == lax else _build(plain)[0] or without
        if without and whole:
            return Validators(whole, without)
    return problem


def _build(schema: Mapping[str, Any]) -> tuple[Validator | None, str]:
    import jsonschema_rs  # noqa: PLC0415 - 20 ms that only calls of proxied servers pay

    options = jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES, dfa_size_limit=PATTERN_BYTES)
    problem = ""
    for kind in (jsonschema_rs.Draft202012Validator, jsonschema_rs.Draft7Validator):
        try:
            return kind(dict(schema), validate_formats=False, pattern_options=options, offline=True), ""
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            problem = str(error).split("\n", 1)[0][:200]
    return None, problem


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
        return own + (self._measure_reference(found["$ref"]) if isinstance(found.get("$ref"), str) else 0)

    def _measure_reference(self, reference: str) -> int:
        if reference not in self._sizes:
            self._sizes[reference] = 0
            self._sizes[reference] = min(self.size(resolve(self._root, reference)), MAX_UNFOLDED + 1)
        return self._sizes[reference]


def _amount(value: Any) -> tuple[int, int]:
    """Return how many parts *value* has, and how many characters; counting ends when they are too many."""
    waiting, nodes, text = [value], 0, 0
    while waiting and nodes <= MAX_NODES:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting.extend(cast("dict[str, Any]", part).values())
        elif isinstance(part, list | tuple):
            waiting.extend(cast("list[Any]", part))
        elif isinstance(part, str):
            text += len(part)
        nodes = max(nodes + 1, len(waiting))
    return nodes, text


def linear_schema(schema: Any, *, patterns: bool = True) -> Any:
    """Return a copy of *schema* without the patterns whose search takes more than linear time, or without any.

    Somebody else wrote them. The copy allows no less than the schema.
    """
    if isinstance(schema, list | tuple):
        return [linear_schema(part, patterns=patterns) for part in cast("Sequence[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    found = cast("Mapping[str, Any]", schema)
    copy = {key: part if key in DATA else linear_schema(part, patterns=patterns) for key, part in found.items()}
    if isinstance(copy.get("pattern"), str) and not (patterns and _is_linear(copy["pattern"])):
        del copy["pattern"]
    by_pattern = copy.get("patternProperties")
    if isinstance(by_pattern, dict) and not (patterns and all(map(_is_linear, cast("dict[str, Any]", by_pattern)))):
        # Without them, keys that they allow would count as others.
        for key in ("patternProperties", *OTHER_KEYS):
            copy.pop(key, None)
    return copy


def _is_linear(pattern: str) -> bool:
    return not NOT_LINEAR.search(pattern)
