"""Pauses grow, have an end, and begin anew when something worked."""

from __future__ import annotations

from ot.execution.servers.server_backoff import ServerBackoff


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_first_loss_costs_no_pause_and_later_ones_double_up_to_the_longest() -> None:
    clock = Clock()
    backoff = ServerBackoff(clock, first=1.0, longest=8.0)
    backoff.failed()
    assert backoff.seconds_left == 0
    for longest in (1, 2, 4, 8, 8, 8):
        backoff.failed()
        assert longest / 2 <= backoff.seconds_left <= longest
        clock.now += longest
        assert backoff.seconds_left == 0


def test_a_start_that_failed_costs_a_pause_at_once() -> None:
    backoff = ServerBackoff(Clock(), first=1.0)
    backoff.refused()
    assert 0.5 <= backoff.seconds_left <= 1.0


def test_what_worked_ends_the_pauses() -> None:
    backoff = ServerBackoff(Clock(), first=1.0)
    backoff.refused()
    backoff.refused()
    backoff.worked()
    assert backoff.seconds_left == 0
    backoff.failed()
    assert backoff.seconds_left == 0
