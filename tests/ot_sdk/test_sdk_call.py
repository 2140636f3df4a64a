"""A thread is interrupted once, and only where that breaks nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from ot_sdk.call import Interrupts
from ot_sdk.errors import Cancelled

PATIENCE = 20.0


def in_thread(work: Callable[[], object]) -> threading.Thread:
    """Run *work* in a thread that does not outlive the tests."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_thread_that_never_ends_is_interrupted() -> None:
    interrupts, begun, ended = Interrupts(), threading.Event(), threading.Event()

    def spin() -> None:
        try:
            with interrupts:
                begun.set()
                while True:
                    pass
        except Cancelled:
            ended.set()

    in_thread(spin)
    assert begun.wait(PATIENCE)
    interrupts.interrupt()
    assert ended.wait(PATIENCE)


def test_a_thread_that_comes_later_is_interrupted_at_once() -> None:
    interrupts = Interrupts()
    interrupts.interrupt()
    with pytest.raises(Cancelled), interrupts:
        pytest.fail("the tool has run")


def test_a_thread_that_has_ended_is_left_alone() -> None:
    interrupts = Interrupts()
    with interrupts:
        pass
    interrupts.interrupt()
    assert 499_500 == sum(range(1000))


def test_a_shield_holds_the_interrupt_back_until_its_end() -> None:
    interrupts, inside, asked, steps = Interrupts(), threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        try:
            with interrupts, interrupts.shield():
                inside.set()
                asked.wait(PATIENCE)
                for _ in range(1000):
                    steps.append("whole")
                steps.append("end of shield")
            steps.append("never")
        except Cancelled:
            steps.append("interrupted")

    thread = in_thread(work)
    assert inside.wait(PATIENCE)
    interrupts.interrupt()
    asked.set()
    thread.join(PATIENCE)
    assert ["whole"] * 1000 + ["end of shield", "interrupted"] == steps


def test_another_thread_needs_no_shield() -> None:
    interrupts = Interrupts()
    done = threading.Event()

    def send() -> None:
        with interrupts.shield():
            done.set()

    with interrupts:
        in_thread(send)
        assert done.wait(PATIENCE)


def test_an_interrupt_never_escapes_from_the_code_around_which_it_was_asked_for() -> None:
    outcomes = {"cancelled": 0, "returned": 0}
    for _ in range(300):
        interrupts, begun = Interrupts(), threading.Event()
        canceller = in_thread(lambda interrupts=interrupts, begun=begun: (begun.wait(PATIENCE), interrupts.interrupt()))
        try:
            with interrupts:
                begun.set()
                for _ in range(50):
                    with interrupts.shield():
                        pass
            outcomes["returned"] += 1
        except Cancelled:
            outcomes["cancelled"] += 1
        canceller.join(PATIENCE)
    assert 300 == sum(outcomes.values())
