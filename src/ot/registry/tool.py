"""Tool and Parameter: what can be called, as plain data; its signature, read from source or a live function."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ParameterKind = Literal["positional", "any", "keyword", "args", "kwargs"]
"""How a parameter may be given: only by place, either way, only by name, the rest by place, the rest by name."""

KINDS: dict[object, ParameterKind] = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "any",
    inspect.Parameter.VAR_POSITIONAL: "args",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_KEYWORD: "kwargs",
}


PLACEHOLDER = "'...'"
"""What stands for the default of a parameter that may be left out, when nobody says what it is."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool, with its annotation and default as source text."""

    name: str
    kind: ParameterKind = "any"
    annotation: str = ""
    default: str | None = None
    description: str = ""

    @property
    def required(self) -> bool:
        """True when a call must give it."""
        return self.default is None and self.kind not in ("args", "kwargs")


@dataclass(frozen=True, slots=True)
class Tool:
    """One function of a pack; ``target`` tells its backend what to call.

    ``read_only`` and ``destructive`` are the tool's own word; None is no word at all. ``input_schema`` is there when
    arguments are to be checked against more than names. ``observed`` tells of a return type that was learned,
    ``definition`` is the hash of the definition that a proxied server gave. A ``decorated`` function may convert its
    arguments, so its annotations do not bind who calls it. A ``pure`` one waits for nothing, no file and no network,
    and is done in a moment. ``needs`` names other tools whose permission a call of it needs as well.
    """

    pack: str
    name: str
    parameters: tuple[Parameter, ...] = ()
    returns: str = ""
    doc: str = ""
    source: str = "local"
    backend: str = "in_process"
    target: str = ""
    timeout: float | None = None
    destructive: bool = False
    read_only: bool | None = None
    format: str | None = None
    secrets: tuple[str, ...] = field(default=())
    input_schema: Mapping[str, Any] | None = field(default=None, repr=False)
    observed: str = ""
    definition: str = ""
    decorated: bool = False
    pure: bool = False
    needs: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """``pack.name``, as a program writes it."""
        return f"{self.pack}.{self.name}"

    @property
    def description(self) -> str:
        """The first paragraph of the docstring, on one line."""
        return " ".join(self.doc.strip().split("\n\n", 1)[0].split())


type WriteType = Callable[[ast.expr], str]
"""Returns an annotation as text."""


def parameters_of_node(
    node: ast.FunctionDef | ast.AsyncFunctionDef, write_type: WriteType = ast.unparse
) -> tuple[Parameter, ...]:
    """Return the parameters that a function's source declares."""
    return tuple(_walk_arguments(node.args, write_type))


def _walk_arguments(arguments: ast.arguments, write_type: WriteType) -> Iterator[Parameter]:
    placed = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(placed) - len(arguments.defaults)) + list(arguments.defaults)
    for index, (argument, default) in enumerate(zip(placed, defaults, strict=True)):
        kind: ParameterKind = "positional" if index < len(arguments.posonlyargs) else "any"
        yield _parameter(argument, kind, default, write_type)
    if arguments.vararg:
        yield _parameter(arguments.vararg, "args", None, write_type)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(argument, "keyword", default, write_type)
    if arguments.kwarg:
        yield _parameter(arguments.kwarg, "kwargs", None, write_type)


def _parameter(argument: ast.arg, kind: ParameterKind, default: ast.expr | None, write_type: WriteType) -> Parameter:
    return Parameter(
        name=argument.arg,
        kind=kind,
        annotation=write_type(argument.annotation) if argument.annotation else "",
        default=ast.unparse(default) if default is not None else None,
    )


def parameters_of_function(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Return the parameters of a live function or bound method."""
    return tuple(
        Parameter(
            name=parameter.name,
            kind=KINDS[parameter.kind],
            annotation="" if parameter.annotation is parameter.empty else _annotation_text(parameter.annotation),
            default=None if parameter.default is parameter.empty else repr(parameter.default),
        )
        for parameter in inspect.signature(function).parameters.values()
    )


def returns_of_function(function: Callable[..., Any]) -> str:
    """Return the return annotation of a live function as text."""
    annotation: Any = inspect.signature(function).return_annotation
    return "" if annotation is inspect.Signature.empty else _annotation_text(annotation)


def _annotation_text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def parameter_text(parameter: Parameter) -> str:
    """Return ``limit: int = 10``, or ``since: str = '...'`` for an optional one whose default is not known."""
    kind = f": {parameter.annotation}" if parameter.annotation else ""
    if parameter.default is None:
        return parameter.name + kind
    return f"{parameter.name}{kind} = {parameter.default}" if kind else f"{parameter.name}={parameter.default}"


def signature_text(tool: Tool) -> str:
    """Return ``pack.name(query: str, limit: int = 10) -> list`` for a reader who wants to call it."""
    shown: list[str] = []
    for parameter in tool.parameters:
        mark = {"args": "*", "kwargs": "**"}.get(parameter.kind, "")
        shown.append(f"{mark}{parameter_text(parameter)}")
    observed = f"  ({tool.observed})" if tool.observed else ""
    return f"{tool.full_name}({', '.join(shown)})" + (f" -> {tool.returns}{observed}" if tool.returns else "")
