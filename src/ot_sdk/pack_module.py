"""The pack's module: imported under its own name, and what of it can be called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any, cast

from ot_sdk.errors import PackError

CO_COROUTINE = 0x80
"""The flag of ``async def``; importing inspect for it would cost a worker's start 15 ms."""


def import_pack(pack: str, file: str, directory: str) -> ModuleType:
    """Return the module in *file*, imported as ``<pack>_tools`` with *directory* first on ``sys.path``.

    Raises:
        PackError: The file's name is not that of a Python file. What the file itself raises is passed on.
    """
    name = f"{pack}_tools"
    sys.path.insert(0, directory)
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise PackError(f"{file} is not a Python file")
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tools_of(module: ModuleType) -> Mapping[str, Callable[..., Any]]:
    """Return what can be called: the names in ``__all__``, else the public functions that the module defines.

    Raises:
        PackError: ``__all__`` names something that is not there or is no function.
    """
    names = getattr(module, "__all__", None)
    if names is None:
        return {name: value for name, value in vars(module).items() if _is_own(name, value, module)}
    tools = {str(name): getattr(module, str(name), None) for name in cast("list[object]", names)}
    for name, value in tools.items():
        if not _is_tool(value):
            raise PackError(f"__all__ names '{name}', which {module.__name__}.py does not define as a function")
    return cast("dict[str, Callable[..., Any]]", tools)


def is_async(function: Callable[..., Any]) -> bool:
    """True for ``async def``; a plain function that returns a coroutine is a plain function."""
    code = getattr(function, "__code__", None)
    return bool(getattr(code, "co_flags", 0) & CO_COROUTINE)


def _is_own(name: str, value: object, module: ModuleType) -> bool:
    public = not name.startswith("_")
    return public and _is_tool(value) and getattr(value, "__module__", None) == module.__name__


def _is_tool(value: object) -> bool:
    return callable(value) and not isinstance(value, type)
