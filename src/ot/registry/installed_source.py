"""Finds the packs that other distributions bring: entry points of the group ``onetool.packs``."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from ot import hooks
from ot.errors import ToolUnavailable
from ot.hooks import Hook
from ot.registry.schema_types import python_type
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_loader import read_pack_file, tools_of_functions
from ot.registry.tool_registry import Pack

logger = logging.getLogger(__name__)


def installed_packs() -> list[Pack]:
    """Return a pack for each entry point; what it names is looked for when a tool is first asked for.

    It names a module, whose functions are read without importing it, or ``module:object``, whose functions are tools.
    """
    return [Pack(found.name, "local", _reader(found), found.value, imported=True) for found in hooks.hooks(hooks.PACKS)]


def _reader(found: Hook) -> Callable[[], Iterable[Tool]]:
    def read() -> list[Tool]:
        if found.attribute:
            return load_declared_tools(found)
        try:
            spec = find_spec(found.module)
        except (ImportError, ValueError) as error:
            raise ToolUnavailable(found.name, f"{found.value} cannot be found: {error}") from None
        if spec is None or not spec.origin or not spec.origin.endswith(".py"):
            raise ToolUnavailable(found.name, f"{found.value} is not a Python module")
        return read_pack_file(Path(spec.origin), pack=found.name, target=found.module)

    return read


def load_declared_tools(found: Hook) -> list[Tool]:
    """Return the public functions of the object that *found* names; the module is imported for it.

    Raises:
        ToolUnavailable: It cannot be imported, or the object has no functions.
    """
    try:
        loaded: Any = found.load()
        return _tools_of(found, cast("dict[str, Any]", vars(loaded)))
    except ToolUnavailable:
        raise
    except BaseException as error:
        logger.exception("pack %s cannot be imported", found.name)
        raise ToolUnavailable(found.name, f"{type(error).__name__}: {error}") from None


def _tools_of(found: Hook, attributes: dict[str, Any]) -> list[Tool]:
    functions = {name: function for name, function in attributes.items() if not name.startswith("_")}
    if not functions or not all(inspect.isroutine(function) for function in functions.values()):
        raise ToolUnavailable(found.name, f"{found.value} must hold functions, and nothing else under a public name")
    place = f"{found.module}:{found.attribute}"
    plain = tools_of_functions(found.name, functions)
    placed = [replace(tool, target=f"{place}.{tool.name}", doc=_as_called(tool)) for tool in plain]
    return [_add_types(tool, functions[tool.name]) for tool in placed]


def _as_called(tool: Tool) -> str:
    """Return the docstring with examples as a program writes them; its author knows no pack's name."""
    return re.sub(rf"^(\s*){tool.name}\(", rf"\1{tool.full_name}(", tool.doc, flags=re.M)


def _add_types(tool: Tool, function: Callable[..., Any]) -> Tool:
    """Return the tool with what the argument model of *function* says, if it has one."""
    from mcp_core import arguments_model, returned_schema  # noqa: PLC0415 - these packs alone need pydantic's models
    from mcp_core.consent import consent_warning  # noqa: PLC0415 - as above

    model = arguments_model(function)
    if model is None:
        return tool
    schema, warning = model.model_json_schema(), consent_warning(model.model_fields)
    returned = returned_schema(function)
    head, gap, rest = tool.doc.partition("\n\n")
    return replace(
        tool,
        doc=f"{head} {warning}{gap}{rest}" if warning else tool.doc,
        parameters=tuple(_describe(parameter, schema) for parameter in tool.parameters),
        returns=python_type(returned) if returned else _short(tool.returns),
        destructive=bool(warning),
        read_only=model.read_only,
        input_schema=schema,
    )


def _describe(parameter: Parameter, schema: dict[str, Any]) -> Parameter:
    described: dict[str, Any] = schema["properties"].get(parameter.name, {})
    # A program cannot construct the pack's own classes, so their keys or choices are shown instead.
    kind = python_type(described, schema) if "$ref" in str(described) else _short(parameter.annotation)
    return replace(parameter, annotation=kind, description=described.get("description", ""))


def _short(annotation: str) -> str:
    """Return a type without the modules of its names, which tell a program nothing."""
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", annotation)
