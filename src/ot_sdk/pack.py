"""The pack of this worker: what the server says of it, its module and tools, and its settings.

Settings are the pack's ``Config`` dataclass, built from what the configuration says and checked strictly.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable, Collection, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType, NoneType, UnionType
from typing import Any, NamedTuple, cast

from ot_sdk.errors import InvalidArguments, PackError, ProtocolMismatch, SettingsError
from ot_sdk.wire import PROTOCOL

Fit = Callable[[Any, Any, str], Any]

CO_COROUTINE = 0x80
"""The flag of ``async def``; importing inspect for it would cost a worker's start 15 ms."""


class PackStart(NamedTuple):
    """The parameters of ``init``."""

    pack: str
    file: str
    directory: str
    settings: Mapping[str, Any] = {}
    secrets: Mapping[str, str] = {}
    spool: str | None = None
    spool_above: int = 1 << 20
    threads: int = 8
    tasks: int = 32
    serial: bool = False


def read_start(params: Mapping[str, Any]) -> PackStart:
    """Return the parameters of ``init``, checked.

    Raises:
        ProtocolMismatch: The server speaks another version.
        InvalidArguments: Something is missing or of the wrong type.
    """
    asked = params.get("protocol")
    if asked != PROTOCOL:
        raise ProtocolMismatch(
            f"the server speaks protocol {asked!r:.20}, this worker protocol {PROTOCOL}: install one version"
        )
    given = {**PackStart._field_defaults, **params}
    found: dict[str, Any] = {name: given.get(name) for name in PackStart._fields}
    for name, value in found.items():
        default = PackStart._field_defaults.get(name, "")
        if value is not default and not isinstance(value, str if default is None else type(default)):
            raise InvalidArguments(f"init: {name} is missing or of the wrong type")
    return PackStart(**found)


# ---------------------------------------------------------------- module


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
    """Return the callable functions: the names in ``__all__``, else the public functions that the module defines.

    Raises:
        PackError: ``__all__`` names something that is missing or not a function.
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


# ---------------------------------------------------------------- settings


def build_config(module: ModuleType, pack: str, settings: Mapping[str, Any]) -> Any:
    """Return an instance of the module's ``Config``, or nothing when it has none.

    Raises:
        SettingsError: The settings do not fit; the text names the key.
    """
    config = getattr(module, "Config", None)
    where = f"tools.{pack}"
    if isinstance(config, type) and hasattr(config, "__dataclass_fields__"):
        return build(config, settings, where)
    if settings:
        has = "its class Config is not a dataclass" if config is not None else "its file has no dataclass named Config"
        raise SettingsError(where, f"pack '{pack}' takes no settings: {has}")
    return None


def build(config: Any, settings: Mapping[str, Any], where: str) -> Any:
    """Return an instance of the dataclass *config*.

    Raises:
        SettingsError: A key is unknown or missing, or a value is of the wrong type.
    """
    from dataclasses import MISSING, fields  # noqa: PLC0415 - whoever has a Config has paid for it, others need not

    known = {field.name: field for field in fields(config) if field.init}
    for key in settings:
        if key not in known:
            raise SettingsError(f"{where}.{key}", f"there is no such key{_guess(str(key), known)}")
    for name, field in known.items():
        if name not in settings and field.default is MISSING and field.default_factory is MISSING:
            raise SettingsError(f"{where}.{name}", "is missing, and has no default")
    types = _types_of(config, where)
    values = {name: fit(value, types[name], f"{where}.{name}") for name, value in settings.items()}
    try:
        return config(**values)
    except Exception as error:
        # The class's own checks, in __post_init__, are other people's code.
        raise SettingsError(where, f"{type(error).__name__}: {error}") from error


def fit(value: Any, wanted: Any, where: str) -> Any:
    """Return *value* as the type *wanted*, an annotation.

    Raises:
        SettingsError: It is of another type, or the annotation is one that settings cannot have.
    """
    origin = typing.get_origin(wanted) or wanted
    if origin is typing.Union or origin is UnionType:
        return _fit_any(value, wanted, where)
    if origin is typing.Literal:
        return _fit_literal(value, wanted, where)
    if isinstance(origin, type):
        for base, fits in FITS:
            if base is origin:
                return fits(value, wanted, where)
        if hasattr(origin, "__dataclass_fields__"):
            return build(origin, _fit_mapping(value, wanted, where), where)
        if hasattr(origin, "__fspath__"):
            return cast("Callable[[str], Any]", origin)(_check(value, wanted, where, str))
    if origin is typing.Any:
        return value
    raise SettingsError(where, f"Config asks for {_name(wanted)}, which settings cannot represent")


def _fit_any(value: Any, wanted: Any, where: str) -> Any:
    for choice in typing.get_args(wanted):
        try:
            return fit(value, choice, where)
        except SettingsError:
            continue
    raise _wrong(value, wanted, where)


def _fit_literal(value: Any, wanted: Any, where: str) -> Any:
    for choice in typing.get_args(wanted):
        if type(value) is type(choice) and value == choice:
            return value
    raise _wrong(value, wanted, where)


def _fit_exact(value: Any, wanted: Any, where: str) -> Any:
    return _check(value, wanted, where, wanted)


def _check(value: Any, wanted: Any, where: str, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise _wrong(value, wanted, where)
    return value


def _fit_list(value: Any, wanted: Any, where: str) -> list[Any]:
    kind = next(iter(typing.get_args(wanted)), Any)
    items = enumerate(_check(value, wanted, where, list))
    return [fit(item, kind, f"{where}[{number}]") for number, item in items]


def _fit_tuple(value: Any, wanted: Any, where: str) -> tuple[Any, ...]:
    kinds = typing.get_args(wanted)
    if not kinds or (len(kinds) == 2 and kinds[1] is Ellipsis):
        return tuple(_fit_list(value, list[kinds[0]] if kinds else list, where))
    items = _fit_list(value, list, where)
    if len(items) != len(kinds):
        raise SettingsError(where, f"expected {len(kinds)} values, not {len(items)}")
    return tuple(fit(item, kind, f"{where}[{n}]") for n, (item, kind) in enumerate(zip(items, kinds, strict=True)))


def _fit_mapping(value: Any, wanted: Any, where: str) -> dict[str, Any]:
    if type(value) is not dict or not all(type(key) is str for key in cast("dict[Any, Any]", value)):
        raise _wrong(value, wanted, where)
    kinds = typing.get_args(wanted)
    kind = kinds[1] if len(kinds) == 2 else Any
    return {key: fit(item, kind, f"{where}.{key}") for key, item in cast("dict[str, Any]", value).items()}


FITS: tuple[tuple[Any, Fit], ...] = (
    (str, _fit_exact),
    (bool, _fit_exact),
    (int, _fit_exact),
    (NoneType, _fit_exact),
    (float, lambda value, wanted, where: float(_check(value, wanted, where, int, float))),
    (list, _fit_list),
    (tuple, _fit_tuple),
    (set, lambda value, wanted, where: set(_fit_list(value, wanted, where))),
    (frozenset, lambda value, wanted, where: frozenset(_fit_list(value, wanted, where))),
    (dict, _fit_mapping),
    (object, lambda value, _wanted, _where: value),
)


def _types_of(config: Any, where: str) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(config)
    except Exception as error:
        # Annotations are other people's code: a name that only a type checker imports fails here.
        raise SettingsError(
            where, f"the types of class Config cannot be read: {type(error).__name__}: {error}"
        ) from error


def _guess(key: str, known: Collection[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only an error's text needs it

    close = get_close_matches(key, list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; there are: {', '.join(sorted(known)) or 'none'}"


def _wrong(value: Any, wanted: Any, where: str) -> SettingsError:
    shown = type(value) is str and len(value) <= 40 and typing.get_origin(wanted) is typing.Literal
    given = repr(value) if shown else _name(type(value))
    return SettingsError(where, f"expected {_name(wanted)}, not {given}")


def _name(wanted: Any) -> str:
    if wanted is NoneType:
        return "null"
    if (origin := typing.get_origin(wanted)) in (typing.Literal, typing.Union, UnionType):
        return " or ".join(map(repr if origin is typing.Literal else _name, typing.get_args(wanted)))
    if isinstance(wanted, type) and not typing.get_args(wanted):
        return wanted.__name__
    return str(wanted).replace("typing.", "")
