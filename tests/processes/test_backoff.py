"""Pauses grow, have an end, and begin anew when something worked."""

from __future__ import annotations

from ot.processes.backoff import Backoff
from ot.workers.pool import crash_backoff


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_first_loss_costs_no_pause_and_later_ones_double_up_to_the_longest() -> None:
    clock = Clock()
    backoff = Backoff(clock, first=1.0, longest=8.0)
    backoff.note_failure()
    assert backoff.seconds_left == 0
    for longest in (1, 2, 4, 8, 8, 8):
        backoff.note_failure()
        assert longest / 2 <= backoff.seconds_left <= longest
        clock.now += longest
        assert backoff.seconds_left == 0


def test_a_start_that_failed_costs_a_pause_at_once() -> None:
    backoff = Backoff(Clock(), first=1.0)
    backoff.note_failure(is_start=True)
    assert 0.5 <= backoff.seconds_left <= 1.0


def test_a_pause_that_was_asked_for_is_kept_up_to_ten_minutes() -> None:
    backoff = Backoff(Clock(), first=1.0)
    backoff.note_failure(is_start=True)
    backoff.hold(30)
    assert backoff.seconds_left == 30
    backoff.hold(5)
    assert backoff.seconds_left == 30
    backoff.hold(1e9)
    assert backoff.seconds_left == 600
    backoff.note_success()
    assert backoff.seconds_left == 0


def test_what_worked_ends_the_pauses() -> None:
    backoff = Backoff(Clock(), first=1.0)
    backoff.note_failure(is_start=True)
    backoff.note_failure(is_start=True)
    backoff.note_success()
    assert backoff.seconds_left == 0
    backoff.note_failure()
    assert backoff.seconds_left == 0


def test_pauses_of_workers_double_up_to_half_a_minute_and_start_small_again_after_a_quiet_minute() -> None:
    now = [0.0]
    backoff = crash_backoff(lambda: now[0])
    longest: list[float] = []
    for _ in range(200):
        backoff.note_failure("killed")
        longest.append(backoff.seconds_left)
        now[0] += backoff.seconds_left
    assert [0.0] * 4 == longest[:4]
    assert 0.05 <= longest[4] <= 0.1
    assert all(15 <= pause <= 30 for pause in longest[20:])
    now[0] += 61
    backoff.note_success()
    for _ in range(5):
        backoff.note_failure("killed")
    assert backoff.seconds_left <= 0.1


def test_something_that_works_soon_after_deaths_leaves_their_pauses_as_they_are() -> None:
    now = [0.0]
    backoff = crash_backoff(lambda: now[0])
    for _ in range(6):
        backoff.note_failure("killed")
    backoff.note_success()
    assert 0.1 <= backoff.seconds_left <= 0.2
    backoff.reset()
    assert backoff.seconds_left == 0
    backoff.note_failure("killed")
    assert backoff.seconds_left == 0
