"""Faults of the area ``run``: whatever a program does, it is answered in time and hurts nobody else."""

from __future__ import annotations

import ast
import time
from typing import Any

import pytest

from faults.faults_corpus import fault
from faults.sandbox_process import busy_process
from faults.watched import CONFIG, Watched
from mcp_wire import WireReply
from workers.process_watch import assert_gone

PARSES = 20
"""How many times as long as its parsing takes a long command may hold up others."""

Fault = dict[str, Any]


def answered(server: Watched, command: str) -> WireReply:
    """Return the reply to *command*, which must be survived and end before the run's time does."""
    reply = server.run(command)
    assert not reply.is_error or "LimitExceeded" != reply.meta["error"]
    return reply


# ---------------------------------------------------------------- time


@fault("R01")
def test_an_endless_loop_ends_at_its_deadline_and_others_are_served_meanwhile(server: Watched, fault: Fault) -> None:
    def loop() -> None:
        number = server.wire.send_run("while True: pass")
        server.ping_meanwhile()
        assert "42" == server.wire.run("6 * 7").text
        reply = server.wire.wait(number)
        assert "LimitExceeded" == reply.meta["error"]
        assert reply.is_error

    server.survive(loop)


@fault("R01")
def test_an_endless_loop_can_be_cancelled(server: Watched, fault: Fault) -> None:
    def cancel() -> None:
        number = server.wire.send_run("while True: pass")
        busy = busy_process(server)
        server.wire.cancel(number)
        assert_gone([busy], 0.5)
        server.wire.run("slow.wait(seconds=0.5)")
        assert number not in server.wire.answers

    server.survive(cancel)


@fault("R02")
@pytest.mark.parametrize("seconds", [3600, 2.5, 1.9])
def test_a_sleep_ends_with_the_run(server: Watched, fault: Fault, seconds: float) -> None:
    reply = server.run(f"import time\ntime.sleep({seconds})\ntime.sleep({seconds})\n1")
    assert "LimitExceeded" == reply.meta["error"]


@fault("R08")
@pytest.mark.parametrize("tool", ["wait", "block"])
def test_the_run_s_clock_covers_its_tools_too(server: Watched, fault: Fault, tool: str) -> None:
    call = f"slow.{tool}(seconds=1.5)"
    reply = server.run(f"{call}\n{call}\n{call}\n'through'")
    assert reply.is_error


@fault("R08")
def test_one_call_that_is_too_long_raises_in_the_program_which_may_go_on(server: Watched, fault: Fault) -> None:
    del fault
    with_short_calls = CONFIG.replace("call_seconds: 2", "call_seconds: 0.3")
    server.place.config.write_text(with_short_calls)
    try:
        server.wire.run("ot.reload()")
        reply = server.run("try:\n    slow.wait(seconds=1)\nexcept TimeoutError as e:\n    x = str(e)\nx")
    finally:
        server.place.config.write_text(CONFIG)
        server.wire.run("ot.reload()")
    assert "slow.wait" in reply.text
    assert not reply.is_error


# ---------------------------------------------------------------- ends of every kind

RAISED = [
    "ArithmeticError", "AssertionError", "AttributeError", "BaseException", "Exception", "FileNotFoundError",
    "GeneratorExit", "ImportError", "IndexError", "KeyError", "KeyboardInterrupt", "LookupError", "MemoryError",
    "NameError", "NotImplementedError", "OSError", "OverflowError", "PermissionError", "RecursionError",
    "RuntimeError", "StopIteration", "SyntaxError", "SystemExit", "TimeoutError", "TypeError", "UnicodeDecodeError",
    "ValueError", "ZeroDivisionError",
]  # fmt: skip


@fault("R03")
@pytest.mark.parametrize("kind", RAISED)
def test_whatever_a_program_raises_is_an_error_reply(server: Watched, fault: Fault, kind: str) -> None:
    reply = answered(server, f"x = 1\nraise {kind}('told')")
    assert reply.is_error
    assert kind in reply.text
    assert "line 2" in reply.text


@fault("R03")
@pytest.mark.parametrize("code", ["import sys\nsys.exit()", "import sys\nsys.exit(0)", "exit()", "quit()"])
def test_sys_exit_is_an_error_reply(server: Watched, fault: Fault, code: str) -> None:
    reply = answered(server, code)
    assert reply.is_error


@fault("R09")
@pytest.mark.parametrize("kind", [
    "Bottom", "CancelledError", "Exception", "GeneratorExit", "KeyboardInterrupt", "MemoryError", "RecursionError",
    "StopAsyncIteration", "StopIteration", "SystemExit",
])  # fmt: skip
@pytest.mark.parametrize("tool", ["raise_", "aexit"])
def test_whatever_a_tool_raises_is_an_error_in_the_program(server: Watched, fault: Fault, tool: str, kind: str) -> None:
    reply = answered(server, f"boom.{tool}(kind={kind!r})")
    assert reply.is_error
    assert "line 1" in reply.text
    caught = server.run(f"try:\n    boom.{tool}(kind={kind!r})\nexcept Exception as e:\n    x = 'caught'\nx")
    assert "caught" == caught.text


@fault("R09")
def test_an_exception_without_a_text_is_an_error_too(server: Watched, fault: Fault) -> None:
    reply = answered(server, "boom.unprintable()")
    assert reply.is_error
    assert "Unprintable" in reply.text


@fault("R09")
@pytest.mark.parametrize("where", ["value", "error"])
def test_a_text_of_a_tool_that_has_no_utf_8_does_not_reach_the_wire(server: Watched, fault: Fault, where: str) -> None:
    reply = answered(server, f"boom.surrogate(where={where!r})")
    assert (where == "error") == reply.is_error
    reply.text.encode()


@fault("R09")
def test_a_secret_in_a_tool_s_error_does_not_come_back(server: Watched, fault: Fault) -> None:
    reply = answered(server, "boom.leak()")
    assert reply.is_error
    assert "cannot sign in with [secret:FAULTS_CANARY]" in reply.text


# ---------------------------------------------------------------- size


@fault("R04")
@pytest.mark.parametrize(
    "bomb", ["'a' * 10**11", "[0] * 10**10", "x = 'a'\nwhile True: x += x", "x = [0]\nwhile True: x = x + x"]
)
def test_a_memory_bomb_is_a_memory_error_in_time_and_outside_the_server(
    server: Watched, fault: Fault, bomb: str
) -> None:
    replies: list[WireReply] = []
    growth = server.peak_growth_mb(lambda: replies.append(server.wire.run(bomb)))
    assert "MemoryError" in replies[0].text
    assert replies[0].is_error
    assert growth <= 10
    server.survive(lambda: None)


@fault("R05")
def test_a_flood_of_prints_is_capped_and_says_so(server: Watched, fault: Fault) -> None:
    reply = server.run("while True: print('x' * 1000)")
    assert reply.is_error
    assert len(reply.raw_line) < 100_000
    handle = reply.texts[0].partition('"handle":"')[2].partition('"')[0]
    stored = next((server.place.home / ".onetool" / "tmp").glob(f"*{handle}*.txt")).read_text()
    assert len(stored) < (1 << 20) + 1000
    assert "print output truncated" in stored[-200:]


@fault("R06")
@pytest.mark.parametrize(
    "code",
    ["def f(n): return f(n + 1)\nf(0)", "(" * 5000 + "1" + ")" * 5000, "a = []\nfor i in range(200_000): a = [a]\na"],
    ids=["recursion", "parentheses", "nested list"],
)
def test_depth_without_end_is_an_error_reply(server: Watched, fault: Fault, code: str) -> None:
    reply = answered(server, code)
    assert reply.is_error


@fault("R07")
@pytest.mark.parametrize("code", ["9**9**9", "1 << 10**10", "int('9' * 5_000_000)"])
def test_an_integer_without_end_is_an_error_before_the_runs_time_is_over(
    server: Watched, fault: Fault, code: str
) -> None:
    reply = answered(server, code)
    assert reply.is_error


def test_a_result_of_one_line_of_20_mb_is_a_handle(server: Watched) -> None:
    reply = answered(server, "'x' * 20_000_000")
    assert not reply.is_error
    assert '"handle":"' in reply.text
    assert '"size_bytes":20000000' in reply.text
    assert len(reply.raw_line) < 20_000


@pytest.mark.parametrize(
    "command", ["f(x)\n" * 20_000, f"x = {list(range(20_000))}"], ids=["dense code", "pasted data"]
)
def test_a_command_of_100_kb_delays_others_no_longer_than_it_takes_to_parse(server: Watched, command: str) -> None:
    # Python's parser lets no other thread run meanwhile: docs/explanation/security.md says so. A dense 100 KB takes
    # it a quarter of a second on a quiet machine.
    def send() -> None:
        number = server.wire.send_run(command)
        try:
            slowest = max(server.wire.ping(60) for _ in range(10))
            started = time.perf_counter()
            ast.parse(command)
            assert slowest < PARSES * (time.perf_counter() - started)
        finally:
            server.wire.wait(number, 60)

    server.survive(send)


# ---------------------------------------------------------------- one run and the next


@fault("R10")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("x = 41", "x"),
        ("def print(*a): return 1\nlen = None\nx = 1", "print('seen')\nlen([1])"),
        ("import json\njson.dumps = None", "import json\njson.dumps([1])"),
        ("ot.help = None", "ot.version()"),
        ("brave = None", "brave.search(query='q')"),
        ("__format__ = 'yml_h'\n{'a': 1}", "{'a': 1}"),
        ("class C: pass\nC.x = 1", "C"),
    ],
)
def test_nothing_of_a_run_is_left_for_the_next(server: Watched, fault: Fault, first: str, second: str) -> None:
    before = server.run(second)
    server.run(first)
    after = server.run(second)
    assert (before.is_error, said(before)) == (after.is_error, said(after))


def said(reply: WireReply) -> list[Any]:
    """Return what a reply says, without the advice to a missing name: that may tell of an earlier run."""
    return [text.split("\n")[:2] if text.startswith("NameError") else text for text in reply.texts]
