"""Every case of the escape corpus, against the real server, judged from outside of it."""

from __future__ import annotations

import pytest

from escapes.cases import Case, escape_cases
from escapes.escape_room import ROOMS, EscapeRoom, marks_of
from pace import patiently
from settled import wait_until_settled

PING_SECONDS = 0.05
LATE_SECONDS = 1.3
GROWTH_MB = 250


TRIED = [
    pytest.param(room, case, id=f"{room}-{case.label}", marks=marks_of(room, case))
    for room in ROOMS
    for case in escape_cases()
]


@pytest.mark.parametrize(("room", "case"), TRIED, indirect=["room"], scope="module")
def test_the_case_is_contained(room: EscapeRoom, case: Case) -> None:
    assert room.escapes(case) == []
    assert room.server.run("1 + 1").text == "2"
    # The machine may be busy with something else for a moment, three times in a row it is not.
    assert min(room.server.ping() for _ in range(3)) <= PING_SECONDS
    assert room.server.stdout_junk == []


def test_nothing_happens_after_the_reply(room: EscapeRoom) -> None:
    late = next(case for case in escape_cases() if case.name == "atexit_thread_linger")
    drop = room.try_command(late, late.commands[0]).drop
    for _ in patiently(LATE_SECONDS):
        if (drop / "late").exists():
            break
    # By now this also looks at what every case before has left.
    assert [path for scratch in room.scratch for path in (scratch / "drop").iterdir()] == []
    assert {(scratch / "canary.txt").read_text() for scratch in room.scratch} == {"canary-file-7f3a"}


def test_the_server_is_left_as_it_was(room: EscapeRoom) -> None:
    wait_until_settled(room.server)
    now = room.server.snapshot()
    assert len(now.children) <= len(room.baseline.children) + 2
    assert now.fds <= room.baseline.fds + 10
    assert now.threads <= room.baseline.threads + 10
    assert now.rss_mb <= room.baseline.rss_mb + GROWTH_MB
