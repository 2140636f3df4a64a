"""Binds the arguments of a call to a tool's parameters, with Python's own words when they do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ot.errors import InvalidArguments, did_you_mean
from ot.execution.param_prefix import complete_names
from ot.registry.signature import signature_text
from ot.registry.tool import Tool

MAX_ARGUMENTS = 1000


def bind_arguments(
    tool: Tool, args: Sequence[Any], kwargs: Mapping[str, Any], *, exact_names: bool = False
) -> dict[str, Any]:
    """Return one mapping of full parameter names to values.

    Arguments given by place are named, so that a backend on the other side of a process needs only names.
    Names may be shortened unless *exact_names* are wanted.

    Raises:
        InvalidArguments: The call does not fit; the text holds the expected signature.
    """
    require_few(tool, len(args) + len(kwargs))
    bound = _name_placed(tool, args)
    for name, value in (kwargs if exact_names else complete_names(kwargs, tool)).items():
        if name in bound:
            raise _invalid(tool, f"got multiple values for argument '{name}'")
        bound[name] = value
    _check_unexpected(tool, bound)
    _check_missing(tool, bound)
    return bound


def require_few(tool: Tool, count: int) -> None:
    """Return when a call may have *count* arguments; ask before looking at them one by one.

    Raises:
        InvalidArguments: They are too many.
    """
    if count > MAX_ARGUMENTS:
        raise _invalid(tool, f"got {count:,} arguments, at most {MAX_ARGUMENTS} are allowed")


def _invalid(tool: Tool, message: str) -> InvalidArguments:
    return InvalidArguments(tool.full_name, f"{tool.full_name}() {message}", signature_text(tool))


def _name_placed(tool: Tool, args: Sequence[Any]) -> dict[str, Any]:
    if not args:
        return {}
    # A model may give a keyword-only tool its arguments by place: the order of the signature is what it meant.
    names = [p.name for p in tool.parameters if p.kind in ("positional", "any", "keyword")]
    if len(args) > len(names):
        takes = f"takes {len(names)} argument{'' if len(names) == 1 else 's'}"
        raise _invalid(tool, f"{takes} but {len(args)} were given")
    return dict(zip(names, args, strict=False))


def _check_unexpected(tool: Tool, bound: Mapping[str, Any]) -> None:
    if any(p.kind == "kwargs" for p in tool.parameters):
        return
    names = [p.name for p in tool.parameters if p.kind in ("positional", "any", "keyword")]
    for name in bound:
        if name not in names:
            guess = did_you_mean(name[:100], names)
            more = f", did you mean '{guess}'?" if guess else ""
            raise _invalid(tool, f"got an unexpected keyword argument '{name[:100]}'{more}")


def _check_missing(tool: Tool, bound: Mapping[str, Any]) -> None:
    missing = [p.name for p in tool.parameters if p.required and p.name not in bound]
    if missing:
        names = ", ".join(f"'{name}'" for name in missing)
        raise _invalid(tool, f"is missing {len(missing)} required argument{'s' if len(missing) > 1 else ''}: {names}")
