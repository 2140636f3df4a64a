"""How many calls a second one worker answers, one after the other."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from worker_client import PACKS, NewWorker

CALLS = 1_000
ROUNDS = 4
MOST_ECHOES = 50
ECHO = "import sys\nfor line in sys.stdin.buffer:\n    sys.stdout.buffer.write(line)\n    sys.stdout.buffer.flush()"


@pytest.mark.parametrize(("pack", "tool"), [("plain", "echo"), ("mixed", "aecho")])
def test_a_worker_answers_thousands_of_calls_a_second(
    new_worker: NewWorker, pack: str, tool: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = min(echo_seconds() for _ in range(ROUNDS))
    worker = new_worker()
    worker.init(PACKS / f"{pack}_tools.py")
    rates: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for number in range(CALLS):
            assert number == worker.call(tool, value=number)
        rates.append(CALLS / (time.perf_counter() - start))
    with capsys.disabled():
        print(f"\n{pack}.{tool}: {max(rates):,.0f} calls/s, one after the other")  # noqa: T201 - the figure is for people
    # A call has two threads, tags and a thread's change more than a line that is sent back.
    assert 1 / max(rates) < MOST_ECHOES * plain


def echo_seconds() -> float:
    """Return how long the same machine takes to send a line to a process and back."""
    with subprocess.Popen([sys.executable, "-c", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        start = time.perf_counter()
        for _ in range(CALLS):
            process.stdin.write(b"a line\n")
            process.stdin.flush()
            assert process.stdout.readline()
        return (time.perf_counter() - start) / CALLS
