"""Stores and other objects that plugins provide, by name: entry points of the group ``onetool.stores``.

| name | the object |
|---|---|
| ``language_model`` | ``(config, secrets, places) -> OpenModel``: the model that the tools of one run may ask |
| ``pins`` | ``(paths) -> PinStore | None``: where commands find what is approved of servers; None: in files |
| ``results.<scheme>`` | ``(output, hide) -> ResultPlaces``: where results go if ``output.store.url`` has that scheme |
"""

from __future__ import annotations

from typing import Any

from ot import extras, hooks
from ot.errors import ConfigError

LANGUAGE_MODEL = "language_model"
PINS = "pins"


def results_of(url: str) -> str:
    """Return the name of what keeps results at *url*."""
    return f"results.{url.partition(':')[0]}"


def load_store(name: str, wanted_by: str) -> Any:
    """Return the object that a plugin offers as *name*, which is *wanted_by* a setting or a tool.

    Raises:
        ConfigError: Nothing that is installed offers it, or that cannot be imported.
    """
    hook = hooks.hook_named(hooks.STORES, name)
    why = f"nothing that is installed offers '{name}'"
    if hook:
        try:
            return hook.load()
        except ImportError as error:
            why = f"{hook.distribution} cannot be imported: {error}"
    if extra := extras.STORES.get(name):
        from ot.installation import install_command  # noqa: PLC0415 - reads the installation, for this text

        raise ConfigError(f"{wanted_by} needs more than the plain installation", hint=install_command(extra))
    raise ConfigError(f"{wanted_by} cannot be used: {why}")
