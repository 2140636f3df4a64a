"""What a jailed program asks of Linux is refused, call by call and path by path, and the page says so."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import linux_probes
import pytest
from exact_ways import EACH_WAY, attacked

from ot.runtime.engines.jail.syscalls import ALLOWED, AUDIT_ARCH, CHECKED, number

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "security.md"


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
