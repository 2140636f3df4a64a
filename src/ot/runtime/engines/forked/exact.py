"""The exact engine: programs run by CPython in a kernel jail, on Linux."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from ot.errors import EngineCrashed
from ot.runtime.engines.forked.cgroup import GroupReport, JailGroup
from ot.runtime.engines.forked.forked_engine import ForkedEngine
from ot.runtime.engines.forked.jail.syscalls import AUDIT_ARCH
from ot.runtime.engines.forked.jail_command import Packages, jail_commands
from ot.runtime.engines.forked.ready_children import MAX_ROOMS
from ot.runtime.engines.forked.zygote_process import JailReport, ZygoteProcess

ALWAYS = ("seccomp", "landlock", "rlimits", "environment")
"""Without any of these there is no jail; they need no package and no rights."""
OPTIONAL = ("namespaces", "cgroup")
HOW_TO_ENABLE: Mapping[str, str] = {
    "seccomp": "a kernel with CONFIG_SECCOMP_FILTER, and x86_64 or aarch64",
    "landlock": "a kernel from 5.13 on, with landlock in its list of security modules (lsm=landlock,...)",
    "rlimits": "see what the probe could do",
    "environment": "see what the probe could do",
    "namespaces": "bubblewrap, with user namespaces allowed to it (kernel.unprivileged_userns_clone=1, "
    "kernel.apparmor_restrict_unprivileged_userns=0 or a profile for bwrap)",
    "cgroup": "a control group that was delegated to the server: start it with "
    "'systemd-run --user --scope -p Delegate=yes onetool serve', or in a container whose /sys/fs/cgroup is writable",
}


class ExactEngine(ForkedEngine):
    """Runs each program in a locked child of a warm interpreter."""

    name = "exact"

    def __init__(
        self,
        *,
        namespaces: bool = True,
        cgroup: bool = True,
        processes: int = 64,
        ready: int = 6,
        sessions: int = 0,
        require_layers: Collection[str] = (),
        packages: Packages | None = None,
        **options: Any,
    ) -> None:
        """Use bubblewrap's namespaces where they work, unless *namespaces* is off; programs may import *packages*.

        A control group bounds all processes together, those of *sessions* too, where available and *cgroup* is on.
        Every zygote must show that the layers that are always there hold, and *require_layers*; for *options* see
        ForkedEngine.
        """
        self._packages = packages
        start = partial(_start, namespaces, packages, processes + ready * MAX_ROOMS + sessions if cgroup else 0)
        check = partial(require, (*ALWAYS, *require_layers))
        super().__init__(start, check=check, processes=processes, ready=ready, **options)

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
        layers |= {"cgroup": _state(found.group)} if found.group else {}
        notes = {"notes": list(found.notes)} if found.notes else {}
        off = {layer: HOW_TO_ENABLE[layer] for layer, state in layers.items() if not state.startswith("on")}
        more: dict[str, Any] = {"to_enable": off} if off else {}
        more |= {"why_not": {"cgroup": found.group.why}} if found.group and found.group.why else {}
        given = {"packages": list(self._packages.imports)} if self._packages else {}
        return super().details() | {"layers": layers, "user": found.user} | notes | more | given


def require(layers: Collection[str], found: JailReport) -> None:
    """Check that each of *layers* holds.

    Raises:
        EngineCrashed: One does not; the text says which, why, and how to have it.
    """
    for layer in layers:
        if missing := found.layers.get(layer, ["do anything: it was not tried"]):
            why = found.group.why if layer == "cgroup" and found.group else "; ".join(found.notes)
            notes = f" ({why})" if why and layer in OPTIONAL else ""
            raise EngineCrashed(
                f"layer '{layer}' does not hold: inside the jail it was possible to {', '.join(missing)}{notes}; "
                f"it needs {HOW_TO_ENABLE[layer]}"
            )


def _state(group: GroupReport) -> str:
    """Return whether a control group limits all that the layer needs, a part of it, or nothing."""
    if not group.held:
        return "off"
    return f"{'in part' if group.missing else 'on'}: {', '.join(group.held)}"


def _start(namespaces: bool, packages: Packages | None, in_group: int) -> ZygoteProcess:
    commands = partial(jail_commands, namespaces=namespaces, packages=packages)
    group = JailGroup(in_group) if in_group else None
    return ZygoteProcess(commands, {"TZ": "UTC0"}, jailed=True, group=group)
