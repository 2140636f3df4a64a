"""Looks at the engines: which one programs run in, which layers hold, what the kernel and bubblewrap give."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ot.cli.diagnosis import Finding
from ot.config.models import Engines
from ot.errors import OneToolError
from ot.runtime.engines.choice import EngineChoice

AREA = "engine"
SWITCHES = {
    "kernel.unprivileged_userns_clone": "0",
    "kernel.apparmor_restrict_unprivileged_userns": "1",
    "user.max_user_namespaces": "0",
}
"""Settings of the kernel, each with the value that keeps bubblewrap from its namespaces."""


async def engine_findings(settings: Engines) -> list[Finding]:
    """Report the engine that the settings lead to, and which layers the exact one has here."""
    try:
        chosen = await _health(settings)
    except OneToolError as error:
        return [Finding(AREA, "problem", str(error), "change engines in your configuration"), *kernel_findings()]
    name = chosen["name"]
    found = [Finding(AREA, "ok", f"programs run in the {name} engine (engines.use: {settings.use})")]
    if name == "trusted":
        found = [Finding(AREA, "note", chosen["warning"], "set engines.use to auto")]
    exact = chosen if name == "exact" else await _exact(settings)
    return [*found, *_layers(exact), *kernel_findings()]


async def _exact(settings: Engines) -> Mapping[str, Any]:
    try:
        return await _health(settings.model_copy(update={"use": "exact"}))
    except OneToolError as error:
        return {"missing": str(error)}


async def _health(settings: Engines) -> dict[str, Any]:
    engine = EngineChoice(settings)
    try:
        await engine.choose()
        health = await engine.health()
        return {"name": health.name, **health.details}
    finally:
        await engine.aclose()


def _layers(exact: Mapping[str, Any]) -> Iterator[Finding]:
    if "missing" in exact:
        yield Finding(AREA, "note", f"the exact engine is unavailable here: {exact['missing']}")
        return
    advice: Mapping[str, str] = exact.get("to_enable", {})
    for layer, state in exact["layers"].items():
        if state.startswith("on"):
            yield Finding(AREA, "ok", f"layer {layer}: {state}")
            continue
        reasons = [exact["why_not"][layer]] if layer in exact.get("why_not", ()) else exact.get("notes", ())
        why = "".join(f" ({note})" for note in reasons)
        yield Finding(AREA, "note", f"layer {layer}: {state}{why}", f"it needs {advice.get(layer, 'a newer kernel')}")


def kernel_findings() -> Iterator[Finding]:
    """Report what the system offers the exact engine."""
    yield Finding("system", "ok", f"{platform.system()} {platform.release()}, Python {platform.python_version()}")
    if sys.platform != "linux":
        return
    if bwrap := shutil.which("bwrap"):
        yield Finding("system", "ok", f"bubblewrap: {bwrap}")
    else:
        missing = "bubblewrap is not installed: programs run without namespaces"
        yield Finding("system", "note", missing, "install the package 'bubblewrap'")
    for name, bad in SWITCHES.items():
        if _switch(name) == bad:
            yield Finding("system", "note", f"{name} is {bad}: bubblewrap may get no namespaces")


def _switch(name: str) -> str:
    try:
        return Path("/proc/sys", *name.split(".")).read_text().strip()
    except OSError:
        return ""
