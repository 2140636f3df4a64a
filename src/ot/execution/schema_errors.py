"""Says what is wrong with an argument, in the words of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ot.brief_repr import brief_repr
from ot.nearest_names import did_you_mean
from ot.registry.clean_text import clean_line
from ot.registry.schema_types import NAMES

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
    """Return the error for a value that is not one of *options*, with the option that was probably meant."""
    shown = ", ".join(value_text(option) for option in options[:MAX_CHOICES])
    more = f" and {len(options) - MAX_CHOICES} more" if len(options) > MAX_CHOICES else ""
    texts = [option for option in options if isinstance(option, str)]
    guess = did_you_mean(given[:100], texts) if isinstance(given, str) and texts else ""
    return f"must be one of {shown}{more}, not {value_text(given)}" + (f", did you mean '{guess}'?" if guess else "")


def _none_of(context: Sequence[Sequence[Any]], depth: int, given: str) -> str:
    """Return what each choice wanted, when all of them wanted another type, or what the first that fits found wrong."""
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
