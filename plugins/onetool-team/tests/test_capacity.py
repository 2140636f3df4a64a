"""The capacity sheet: its arithmetic, and that the page shows what the kept measurements come to."""

from __future__ import annotations

import json
import math
import sys

import pytest
from benchmarks.capacity import KEPT, PAGE, figure, options
from benchmarks.capacity_sheet import Assumptions, Costs, bottlenecks, cpu_of_a_run, step
from benchmarks.capacity_text import END, START, gb, put_into, sheet, short
from benchmarks.process_costs import cpu_ns, descendants, pss_bytes

COSTS = Costs(
    run_ms=4,
    nested_ms=0.5,
    worker_ms=1,
    recorded_ms=0.5,
    remote_ms=5,
    stored_ms=10,
    background_ms=20,
    redis_run_ms=0.1,
    postgres_entry_ms=0.2,
    postgres_background_ms=2,
    entry_bytes=1024,
)
PLAIN = Assumptions(active=0.1, runs=86.4, peak=10, calls=2, writes=1, seconds=3, stored=0.1, background=0.05)


def test_a_run_costs_itself_its_calls_and_its_share_of_what_few_runs_do() -> None:
    assert cpu_of_a_run(COSTS, PLAIN) == pytest.approx(4 + 2 * 1 + 1 * 0.5 + 0.1 * 10 + 0.05 * 20)


def test_a_step_follows_from_users_and_assumptions() -> None:
    found = step(1_000_000, COSTS, PLAIN)  # 8,640,000 runs a day
    assert found.runs_per_second == pytest.approx(100)
    assert found.peak_per_second == pytest.approx(1000)
    assert found.cores == pytest.approx(1000 * 8.5 / 1000 / 0.5)
    assert found.remote_cores == pytest.approx(1000 * 2 * (5 - 1) / 1000 / 0.5)
    assert found.in_flight == pytest.approx(3000)
    assert found.waiting_gb == pytest.approx(3000 * 30 / 1024)
    assert found.own_gb == pytest.approx(1_000_000 * 0.1 * 0.05 * 2 * 30 / 1024)
    assert found.machines == math.ceil(max(17 / 8, 3000 * 30 / 1024 / 64)) + 1
    assert found.background_per_second == pytest.approx(50)
    assert found.redis_cores == pytest.approx(1000 * 0.1 / 1000)
    assert found.postgres_cores == pytest.approx(1000 * (1 * 0.2 + 0.05 * 2) / 1000 / 0.5)
    assert found.results_gb == pytest.approx(8_640_000 * 0.1 * 200 / 1024 / 1024)
    assert found.events_gb == pytest.approx(8_640_000 * 1.2 / 1024 / 1024)
    assert found.ledger_gb == pytest.approx(8_640_000 * 30 / 1024 / 1024)


def test_what_runs_out_first_comes_first_and_each_carries_just_its_users() -> None:
    found = bottlenecks(COSTS, PLAIN)
    assert [one.users for one in found] == sorted(one.users for one in found)
    by_name = {one.what: one.users for one in found}
    at_cores = step(round(by_name["cores of one machine"]), COSTS, PLAIN)
    assert at_cores.cores == pytest.approx(PLAIN.cores, rel=1e-3)
    at_waiting = step(round(by_name["memory of one machine, by programs that wait"]), COSTS, PLAIN)
    assert at_waiting.waiting_gb == pytest.approx(PLAIN.machine_gb, rel=1e-3)


def test_what_was_not_measured_costs_nothing_and_runs_out_never() -> None:
    unmeasured = Costs.of({"run, CPU ms": {"median": 4.0, "low": 3.0, "high": 5.0}})
    assert (unmeasured.run_ms, unmeasured.redis_run_ms) == (4.0, 0.0)
    assert math.isinf(bottlenecks(unmeasured, PLAIN)[-1].users)


def test_a_median_comes_with_its_interval() -> None:
    found = figure([1.0, 2.0, 3.0, 4.0, 100.0])
    assert found["median"] == 3.0
    assert found["low"] <= 3.0 <= found["high"] <= 100.0
    assert figure([7.0]) == {"median": 7.0, "low": 7.0, "high": 7.0}


def test_numbers_are_short_and_keep_what_counts() -> None:
    assert [short(value) for value in (0, 0.0234, 0.5, 3, 16.4, 1157.4, 11_574)] == [
        "0", "0.023", "0.5", "3", "16", "1,160", "11,600",
    ]  # fmt: skip
    assert [gb(value) for value in (0.05, 6.78, 2048)] == ["51 MB", "6.8 GB", "2 TB"]


def test_every_assumption_is_an_option_with_its_default() -> None:
    asked = options().parse_args(["--kept", "--calls", "7"])
    assert asked.calls == 7
    assert asked.own_mb == Assumptions().own_mb


def test_the_sheet_of_the_page_is_what_the_kept_measurements_give() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(START) == page.count(END) == 1
    assert put_into(page, sheet(json.loads(KEPT.read_text()), Assumptions())) == page


def test_time_and_memory_of_a_process_are_those_of_all_below_it() -> None:
    import subprocess

    code = "import os, sys, time\nif os.fork() == 0:\n  while time.process_time() < 0.2: pass\n  os._exit(0)\n"
    code += "os.wait()\nprint('ready', flush=True)\nsys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout and child.stdout.readline() == b"ready\n"
        assert descendants([child.pid]) == [child.pid]
        assert cpu_ns([child.pid]) > 0.19e9  # its child's, which has ended
        assert pss_bytes([child.pid]) > 1 << 20
    finally:
        child.communicate()
