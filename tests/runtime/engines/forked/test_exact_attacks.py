"""The exact engine's jail under attack, with every layer and with fewer, as root and as an ordinary user.

One run of all attacks in each way answers every test here.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import linux_probes
import pytest
import unruly_programs
from exact_ways import EACH_WAY, attacked

from ot.runtime.engines.forked.exact import ALWAYS
from ot.runtime.engines.forked.jail.syscalls import ALLOWED, AUDIT_ARCH, CHECKED, number
from system_package import require_programs

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "jail.md"
ENDS = {"value", "ProgramFailed", "LimitExceeded", "EngineCrashed"}
MAX_PAUSE_SECONDS = 1.5
"""0.1 to 0.3 s were measured; time in which others had the processors does not count."""
MAX_GROWTH_MB = 400


@pytest.mark.parametrize("way", EACH_WAY)
def test_no_attack_succeeds_and_nothing_is_inherited(way: str) -> None:
    found = attacked(way)
    assert found["succeeded"] == []
    assert {layer: found["layers"][layer] for layer in ALWAYS} == {layer: [] for layer in ALWAYS}
    assert found["who"] == [False, {}, "/"] or "uid 0" in found["user"]
    kinds = [(fd, int(kind, 8)) for fd, kind in found["descriptors"]]
    assert kinds == [(0, stat.S_IFCHR), (1, stat.S_IFCHR), (2, stat.S_IFCHR), (3, stat.S_IFSOCK)]
    first, second = found["random"]
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_with_namespaces_the_host_cannot_even_be_seen() -> None:
    require_programs("bwrap")
    found = attacked("every layer")
    assert found["layers"]["namespaces"] == []


# ---------------------------------------------------------------- what is asked of Linux, call by call and path by path


@pytest.mark.parametrize("machine", sorted(AUDIT_ARCH))
def test_no_call_that_is_tried_is_on_the_list_of_those_allowed(machine: str) -> None:
    allowed = {number(name, machine) for name in (*ALLOWED, *CHECKED)}
    tried = linux_probes.calls(machine)
    assert [name for name, (call, _) in tried.items() if call in allowed and ":" not in name] == []
    assert {name.partition(":")[0] for name in tried if ":" in name} | {"mmap"} == CHECKED.keys()


@pytest.mark.parametrize("way", EACH_WAY)
def test_every_call_is_refused_by_the_filter(way: str) -> None:
    found = attacked(way)["probes"]["calls"]
    assert found.keys() == linux_probes.calls(os.uname().machine).keys()
    expected = {name: errno.ENOSYS if name.startswith("clone3") else errno.EPERM for name in found}
    assert found == expected


@pytest.mark.parametrize("way", EACH_WAY)
def test_no_path_of_the_system_can_be_opened(way: str) -> None:
    found = attacked(way)["probes"]["paths"]
    reasons = {errno.EACCES, errno.ENOENT, errno.EPERM, errno.ENXIO, errno.ENODEV}
    assert {path: error for path, error in found.items() if error not in reasons} == {}
    assert len(found) >= 45


def test_the_page_has_the_table_of_what_is_tried() -> None:
    assert linux_probes.table() in PAGE.read_text("utf-8"), "run linux_probes.py and put its table on the page"


# ---------------------------------------------------------------- programs that attack the server through their own run


@pytest.mark.parametrize("way", EACH_WAY)
def test_every_unruly_program_ends_as_a_run_ends(way: str) -> None:
    found = attacked(way)["unruly"]
    assert found["ends"].keys() == unruly_programs.EVERY.keys()
    assert {name: end for name, end in found["ends"].items() if end not in ENDS} == {}
    assert found["problems"] == []


@pytest.mark.parametrize("way", EACH_WAY)
def test_honest_runs_beside_them_are_answered_rightly_and_nothing_is_reached(way: str) -> None:
    found = attacked(way)["unruly"]
    assert found["wrong"] == []
    assert found["reached"] == []


@pytest.mark.parametrize("way", EACH_WAY)
def test_the_server_neither_stands_still_nor_fills_its_memory(way: str) -> None:
    found = attacked(way)["unruly"]
    assert found["pause"] < MAX_PAUSE_SECONDS
    assert found["grown_mb"] < MAX_GROWTH_MB


def test_floods_and_forged_messages_are_not_taken_for_results() -> None:
    ends = attacked("every layer")["unruly"]["ends"]
    taken = [name for name, end in ends.items() if name.startswith("flood: ") and end == "value"]
    assert taken == []
    alike = {end for name, end in ends.items() if name.endswith("have one hash")}
    assert alike == {"EngineCrashed"}
    assert len(ends) >= 30
