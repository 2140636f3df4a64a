"""Which processes count as clients, whose children cannot answer."""

from __future__ import annotations

import sys

import pytest

from ot.processes import peer
from ot.processes.peer import ProcessFacts

PARENTS = {
    10: ("onetool", 11), 11: ("uv", 12), 12: ("node", 13), 13: ("systemd", 1),
    20: ("onetool", 13),
    30: ("onetool", 31), 31: ("init", 13),
}  # fmt: skip
"""A client's server behind a launcher, a service or one whose client has just died, and one below an init."""


def test_a_client_is_who_started_a_server_and_not_who_takes_in_orphans(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(pid: int) -> ProcessFacts:
        name, parent = PARENTS[pid]
        return ProcessFacts(pid, name, parent, pid, pid, 0, -1, 0)

    monkeypatch.setattr(ProcessFacts, "read", read)
    monkeypatch.setattr(peer, "_serving_processes", lambda: [10, 20, 30])
    monkeypatch.setattr(peer.os, "getpid", lambda: 20)
    assert {11, 12} == peer._processes_of_clients()
    monkeypatch.setitem(PARENTS, 13, ("a-session-manager", 1))
    monkeypatch.setattr(peer, "_serving_processes", lambda: [10])
    assert {11, 12, 13} == peer._processes_of_clients()
    monkeypatch.setattr(sys, "argv", [f"/x{peer.SHARED}", "socket"])  # this process is the shared server
    assert {11, 12} == peer._processes_of_clients()
