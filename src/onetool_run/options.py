"""What the options of OneTool mean to a workspace."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from ot.config.paths import Paths
from ot.config.setting_types import RESERVED
from ot.errors import ConfigError

type EngineName = Literal["auto", "exact", "portable", "trusted"]
type Format = Literal["json", "json_h", "yml", "yml_h", "raw"]


def paths_of(
    cwd: str | os.PathLike[str] | None,
    config_dir: str | os.PathLike[str] | None,
    environ: Mapping[str, str] | None,
) -> Paths:
    """Return where a OneTool works and reads its settings.

    Raises:
        ConfigError: There is no such directory.
    """
    given = os.environ if environ is None else environ
    found = Paths.find(given if cwd is None else {})
    place = found.cwd if cwd is None else Path(cwd).expanduser().absolute()
    if not place.is_dir():
        raise ConfigError(f"cwd is not a directory: {place}")
    directory = found.global_dir if config_dir is None else Path(config_dir).expanduser().absolute()
    return replace(Paths.of(place, directory), environ=given)


def engine_settings(config: Mapping[str, Any], engine: EngineName | None) -> dict[str, Any]:
    """Return the settings of engines with the one that was asked for."""
    return {"engines": {**config.get("engines", {}), "use": engine}} if engine else {}


def functions_of(pack: str, given: Iterable[Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Return the functions of a pack by name.

    Raises:
        ValueError: *pack* cannot be a pack's name.
    """
    if not pack.isidentifier() or pack in RESERVED:
        raise ValueError(f"'{pack}' cannot be a pack's name: it is not a Python name, or is taken")
    return {function.__name__: function for function in given}
