"""Looks at the server that clients share: whether it can be used from here, answers, and is of this version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ot.cli.diagnosis import Finding
from ot.cli.sharing.running_servers import RunningServer, running_servers
from ot.cli.terminal import counted
from ot.relay.place import Unshared, switched_off
from ot.version import installed_version

AREA = "shared server"


def sharing_findings(setting: str = "on") -> Iterator[Finding]:
    """Return what is to be known of the shared servers of this user; *setting* is that of the configuration."""
    if why := switched_off() or ("the setting daemon is off" if setting == "off" else ""):
        yield Finding(AREA, "ok", f"each client is served alone: {why}")
        return
    try:
        servers = running_servers()
    except Unshared as error:
        yield Finding(AREA, "note", f"each client is served alone: {error}")
        return
    yield from map(_finding, servers)
    if not servers:
        yield Finding(AREA, "ok", "none is running; the first client that is connected with --shared starts it")


def _finding(server: RunningServer) -> Finding:
    if server.silent:
        advice = f"end process {pid}: kill -9 {pid}" if (pid := _pid(server)) else f"remove {server.socket}"
        return Finding(AREA, "problem", f"{server.socket} does not answer: {server.silent}", advice)
    state = server.state
    text = f"process {state['pid']} serves {counted(len(state['connections']), 'client')}"
    if state["build"] == installed_version():
        return Finding(AREA, "ok", text)
    text += f" with version {state['build']}, while {installed_version()} is installed"
    return Finding(AREA, "note", text, "it ends with its last client; onetool stop ends it now")


def _pid(server: RunningServer) -> str:
    """Return the process that has made the socket, as its own note says."""
    try:
        return Path(server.socket).with_suffix(".life").read_text().split()[0]
    except (OSError, IndexError):
        return ""
