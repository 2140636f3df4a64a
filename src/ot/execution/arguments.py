"""Binds a call's arguments to a tool's parameters, turns them into what JSON has, and says what is wrong with one."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import PurePath
from typing import Any, cast

from ot.brief_repr import brief_repr
from ot.errors import AmbiguousArgument, InvalidArguments
from ot.nearest_names import did_you_mean, same_name
from ot.registry.clean_text import clean_line
from ot.registry.schema_types import NAMES
from ot.registry.tool import Parameter, Tool, signature_text

MAX_WRONG = 5
MAX_ARGUMENTS = 1000
MAX_INT_BITS = 14_000
"""Python reads and writes no whole number that has more; nor do most readers of JSON."""
HINTS: Mapping[type, str] = {
    bytes: "give text, such as base64.b64encode(data).decode()",
    set: "give a list, such as sorted(values)",
    frozenset: "give a list, such as sorted(values)",
    datetime.datetime: "give text, such as value.isoformat()",
    datetime.date: "give text, such as value.isoformat()",
    datetime.time: "give text, such as value.isoformat()",
    datetime.timedelta: "give a number, such as value.total_seconds()",
    Decimal: "give float(value) or str(value)",
}
UNSEEN: Any = ...
"""What stands for a value that is known only when the program runs, while its calls are checked."""


def is_seen(value: Any) -> bool:
    """Return whether no part of *value* is UNSEEN."""
    if isinstance(value, dict):
        return all(is_seen(part) for pair in cast("dict[Any, Any]", value).items() for part in pair)
    if isinstance(value, list | tuple | set):
        return all(map(is_seen, cast("Sequence[Any]", value)))
    return value is not UNSEEN


def bind_arguments(
    tool: Tool,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    exact_names: bool = False,
    may_be: Callable[[Parameter, Any], bool] | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Return one mapping of full parameter names to values.

    Arguments given by place are named, so that a backend on the other side of a process needs only names.
    Names may be shortened or spelled otherwise unless *exact_names* are wanted. The only unknown name is the only
    missing parameter, if *may_be* says so. *note* hears of names that were taken for others.

    Raises:
        InvalidArguments: The call does not fit; the text holds the expected signature.
    """
    require_few(tool, len(args) + len(kwargs))
    bound = _name_placed(tool, args)
    for name, value in (kwargs if exact_names else complete_names(kwargs, tool, note)).items():
        if name in bound:
            raise invalid(tool, f"got multiple values for argument '{name}'")
        bound[name] = value
    unknown = _unknown(tool, bound)
    missing = [parameter for parameter in tool.parameters if parameter.required and parameter.name not in bound]
    if may_be and len(unknown) == len(missing) == 1 and may_be(missing[0], bound[unknown[0]]):
        bound[missing[0].name] = bound.pop(unknown[0])
        note(f"{unknown[0]}= was taken as {missing[0].name}=")
    elif unknown or missing:
        raise invalid(tool, "; ".join([*_describe_unexpected(tool, unknown), *_missing(missing)]))
    return bound


def require_few(tool: Tool, count: int) -> None:
    """Check that a call may have *count* arguments; call this before reading them one by one.

    Raises:
        InvalidArguments: They are too many.
    """
    if count > MAX_ARGUMENTS:
        raise invalid(tool, f"got {count:,} arguments, at most {MAX_ARGUMENTS} are allowed")


def invalid(tool: Tool, message: str) -> InvalidArguments:
    """Return the error that says *message* about a call of *tool*, with the signature that is expected."""
    return InvalidArguments(tool.full_name, f"{tool.full_name}() {message}", signature_text(tool))


def _list_names(tool: Tool) -> list[str]:
    return [p.name for p in tool.parameters if p.kind in ("positional", "any", "keyword")]


def _name_placed(tool: Tool, args: Sequence[Any]) -> dict[str, Any]:
    if not args:
        return {}
    # A model may give a keyword-only tool its arguments by place: the order of the signature is what it meant.
    names = _list_names(tool)
    if len(args) > len(names):
        takes = f"takes {len(names)} argument{'' if len(names) == 1 else 's'}"
        raise invalid(tool, f"{takes} but {len(args)} were given")
    return dict(zip(names, args, strict=False))


def _unknown(tool: Tool, bound: Mapping[str, Any]) -> list[str]:
    """Return the names that the tool does not have."""
    if _takes_any_name(tool):
        return []
    names = _list_names(tool)
    return [name for name in bound if name not in names]


def _takes_any_name(tool: Tool) -> bool:
    return any(p.kind == "kwargs" for p in tool.parameters)


def _describe_unexpected(tool: Tool, unknown: Sequence[str]) -> Iterator[str]:
    names = _list_names(tool)
    for name in unknown[:MAX_WRONG]:
        guess = did_you_mean(name[:100], names)
        more = f", did you mean '{guess}'?" if guess else ""
        yield f"got an unexpected keyword argument '{name[:100]}'{more}"


def _missing(missing: Sequence[Parameter]) -> list[str]:
    names = ", ".join(f"'{parameter.name}'" for parameter in missing)
    many = "s" if len(missing) > 1 else ""
    return [f"is missing {len(missing)} required argument{many}: {names}"] if missing else []


def complete_name(name: str, parameters: Sequence[str], *, any_name: bool = False) -> str:
    """Return the parameter that *name* shortens or spells otherwise, or *name* itself.

    A tool that takes *any_name* means another spelling as it is written.
    """
    # Only a non-empty ASCII identifier may abbreviate: a look-alike letter must never match.
    if name in parameters or not name.isascii():
        return name
    full = next((full for full in parameters if full.startswith(name)), "") if name.isidentifier() else ""
    return full or ("" if any_name else same_name(name, parameters)) or name


def complete_names(
    given: Mapping[str, Any], tool: Tool, note: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """Return *given* under the tool's full parameter names; *note* hears of those that are spelled otherwise.

    Raises:
        AmbiguousArgument: Two given names mean the same parameter.
    """
    parameters = [p.name for p in tool.parameters if p.kind in ("any", "keyword")]
    completed: dict[str, Any] = {}
    source: dict[str, str] = {}
    for name, value in given.items():
        full = name if name in parameters else complete_name(name, parameters, any_name=_takes_any_name(tool))
        if full not in parameters and (meant := _other_parameter(tool, name, given)):
            full = meant
        if not full.startswith(name):
            note(f"{name}= was taken as {full}=")
        # Without this, q= after query= would silently win.
        if full in source:
            raise AmbiguousArgument(tool.full_name, full, (source[full], name), signature_text(tool))
        source[full] = name
        completed[full] = value
    return completed


def _other_parameter(tool: Tool, word: str, given: Mapping[str, Any]) -> str:
    """Return the parameter of a bundled tool that *word* is another word for, unless it is *given* as well."""
    from ot.registry.other_words import other_parameter  # noqa: PLC0415 - most programs need no other words

    meant = other_parameter(tool, word)
    return meant if meant and meant not in given else ""


class NotJsonValue(ValueError):
    """A value that JSON does not have; ``where`` tells its place, ``hint`` what to give instead."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what, hint)
        self.where, self.what, self.hint = "", what, hint


def json_value(value: Any) -> Any:
    """Return *value* made of what JSON has: tuples become lists and paths text.

    Raises:
        NotJsonValue: Some part has no form in JSON.
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        if value.bit_length() <= MAX_INT_BITS:
            return value
        raise NotJsonValue("is a whole number of more than 4,000 digits", "give text, such as hex(value)")
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise NotJsonValue(f"is {value}, which JSON has no number for", "give a finite number or None")
    if isinstance(value, dict):
        return {_key(key): _below(f"[{key!r}]", part) for key, part in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_below(f"[{place}]", part) for place, part in enumerate(cast("list[Any]", value))]
    if isinstance(value, PurePath):
        return str(value)
    kind = type(cast("object", value))
    raise NotJsonValue(f"is {kind.__name__}, which JSON lacks", HINTS.get(kind, "give plain data"))


def _below(step: str, part: Any) -> Any:
    try:
        return json_value(part)
    except NotJsonValue as error:
        error.where = step + error.where
        raise


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise NotJsonValue(f"has the key {key!r:.40}, and keys are text in JSON", "give str(key)")


MAX_VALUE = 60
MAX_CHOICES = 20
LIMITS = {
    "Minimum": "at least",
    "Maximum": "at most",
    "ExclusiveMinimum": "more than",
    "ExclusiveMaximum": "less than",
}
SIZES = {
    "MinLength": ("at least", "characters"),
    "MaxLength": ("at most", "characters"),
    "MinItems": ("at least", "items"),
    "MaxItems": ("at most", "items"),
    "MinProperties": ("at least", "keys"),
    "MaxProperties": ("at most", "keys"),
}


def error_text(error: Any, names: Mapping[str, str]) -> str:
    """Return which argument is wrong and how; *names* are those that a program uses for the schema's own."""
    path: Sequence[str | int] = list(error.instance_path)
    where = f"argument '{_place(path, names)}'" if path else "arguments:"
    return f"{where} {_what(error, names if not path else {})}"


def _place(path: Sequence[str | int], names: Mapping[str, str]) -> str:
    first, *rest = path
    steps = "".join(f"[{step!r}]" if isinstance(step, str) else f"[{step}]" for step in rest)
    return clean_line(f"{names.get(str(first), first)}{steps}", 200)


def _what(error: Any, names: Mapping[str, str]) -> str:
    kind, name = error.kind, type(error.kind).__name__
    given = value_text(error.instance)
    if name in LIMITS:
        return f"must be {LIMITS[name]} {kind.limit}, not {given}"
    if name in SIZES:
        most, what = SIZES[name]
        return f"must have {most} {kind.limit} {what}, has {len(error.instance)}"
    match name:
        case "Type":
            hint = ": leave it out" if error.instance is None and len(error.instance_path) == 1 else ""
            return f"must be {_types(kind.types)}, not {_kind_of(error.instance)}{hint}"
        case "Enum":
            return choice_text(kind.options, error.instance)
        case "Constant":
            return f"must be {value_text(kind.expected_value)}, not {given}"
        case "Required":
            return f"must have '{clean_line(names.get(kind.property, kind.property), 100)}'"
        case "AdditionalProperties" | "UnevaluatedProperties":
            return f"must not have {', '.join(value_text(key) for key in kind.unexpected[:5])}"
        case "Pattern":
            return f"must match the pattern {clean_line(kind.pattern, 200)}, and {given} does not"
        case "AnyOf" | "OneOfNotValid":
            return _none_of(kind.context, len(error.instance_path), given)
        case _:
            return clean_line(error.message, 200)


def _types(types: Sequence[str]) -> str:
    return " or ".join(NAMES.get(kind, kind) for kind in types)


def _kind_of(value: Any) -> str:
    if value is None:
        return "None"
    kind = type(cast("object", value)).__name__
    return kind if isinstance(value, dict | list) else f"{kind} {value_text(value)}"


def choice_text(options: Sequence[Any], given: Any) -> str:
    """Say that *given* is not one of *options*, and which was probably meant."""
    shown = ", ".join(value_text(option) for option in options[:MAX_CHOICES])
    more = f" and {len(options) - MAX_CHOICES} more" if len(options) > MAX_CHOICES else ""
    texts = [option for option in options if isinstance(option, str)]
    guess = did_you_mean(given[:100], texts) if isinstance(given, str) and texts else ""
    return f"must be one of {shown}{more}, not {value_text(given)}" + (f", did you mean '{guess}'?" if guess else "")


def _none_of(context: Sequence[Sequence[Any]], depth: int, given: str) -> str:
    """Return the types that the choices wanted if all wanted another type, else what the best choice found wrong."""
    firsts = [errors[0] for errors in context if errors]
    of_right_type = [e for e in firsts if type(e.kind).__name__ != "Type" or len(e.instance_path) > depth]
    if not of_right_type:
        wanted = dict.fromkeys(kind for error in firsts for kind in error.kind.types)
        return f"must be {_types(list(wanted))}, not {given}"
    nearest = of_right_type[0]
    path = "".join(f"[{step!r}]" for step in nearest.instance_path[depth:])
    return f"matches none of the allowed alternatives: {path} {_what(nearest, {})}".replace(":  ", ": it ")


def value_text(value: Any) -> str:
    """Return *value* as a program would write it, cut short."""
    if isinstance(value, str):
        return repr(clean_line(value, MAX_VALUE))
    return clean_line(brief_repr(value, MAX_VALUE), 2 * MAX_VALUE)
