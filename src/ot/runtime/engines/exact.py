"""The exact engine: programs run by CPython in a kernel jail, on Linux."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from ot.errors import EngineCrashed
from ot.runtime.engines.forked import ForkedEngine
from ot.runtime.engines.jail.syscalls import AUDIT_ARCH
from ot.runtime.engines.jail_command import Packages, jail_commands
from ot.runtime.engines.zygote_process import Locked, ZygoteProcess

ALWAYS = ("seccomp", "landlock", "rlimits", "environment")
"""Without any of these there is no jail; they need no package and no rights."""
OPTIONAL = ("namespaces",)
HOW_TO_ENABLE: Mapping[str, str] = {
    "seccomp": "a kernel with CONFIG_SECCOMP_FILTER, and x86_64 or aarch64",
    "landlock": "a kernel from 5.13 on, with landlock in its list of security modules (lsm=landlock,...)",
    "rlimits": "see what the probe could do",
    "environment": "see what the probe could do",
    "namespaces": "bubblewrap, with user namespaces allowed to it (kernel.unprivileged_userns_clone=1, "
    "kernel.apparmor_restrict_unprivileged_userns=0 or a profile for bwrap)",
}


class ExactEngine(ForkedEngine):
    """Runs each program in a locked child of a warm interpreter."""

    name = "exact"

    def __init__(
        self,
        *,
        namespaces: bool = True,
        require_layers: Collection[str] = (),
        packages: Packages | None = None,
        **options: Any,
    ) -> None:
        """Use bubblewrap's namespaces where they work, unless *namespaces* is off; programs may import *packages*.

        Every zygote must show that the layers that are always there hold, and *require_layers*; for *options* see
        ForkedEngine.
        """
        self._packages = packages
        super().__init__(
            partial(_start, namespaces, packages), check=partial(require, (*ALWAYS, *require_layers)), **options
        )

    @staticmethod
    def missing_here() -> str:
        """Return why this machine cannot have the engine, as far as that can be told at once."""
        if sys.platform != "linux":
            return "it needs Linux"
        machine = os.uname().machine
        return "" if machine in AUDIT_ARCH else f"there is no system call filter for {machine}"

    def details(self) -> dict[str, Any]:
        """Return which layers hold, and why others do not."""
        found = self.locked
        if found is None:
            return super().details() | {"layers": "not started"}
        layers = {layer: "on" if not found.layers.get(layer, ["?"]) else "off" for layer in (*ALWAYS, *OPTIONAL)}
        layers |= {"landlock": f"on, version {found.landlock}"} if layers["landlock"] == "on" else {}
        notes = {"notes": list(found.notes)} if found.notes else {}
        off = {layer: HOW_TO_ENABLE[layer] for layer, state in layers.items() if state == "off"}
        more = {"to_enable": off} if off else {}
        given = {"packages": list(self._packages.imports)} if self._packages else {}
        return super().details() | {"layers": layers, "user": found.user} | notes | more | given


def require(layers: Collection[str], found: Locked) -> None:
    """Return when each of *layers* holds.

    Raises:
        EngineCrashed: One does not; the text says which, why, and how to have it.
    """
    for layer in layers:
        if missing := found.layers.get(layer, ["do anything: it was not tried"]):
            notes = f" ({'; '.join(found.notes)})" if found.notes and layer in OPTIONAL else ""
            raise EngineCrashed(
                f"layer '{layer}' does not hold: inside the jail it was possible to {', '.join(missing)}{notes}; "
                f"it needs {HOW_TO_ENABLE[layer]}"
            )


def _start(namespaces: bool, packages: Packages | None) -> ZygoteProcess:
    commands = partial(jail_commands, namespaces=namespaces, packages=packages)
    return ZygoteProcess(commands, {"TZ": "UTC0"}, jailed=True)
