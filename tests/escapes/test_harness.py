"""What the harness of the escapes sees, and attacks that the corpus does not name."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from escapes.cases import Case, escape_cases
from escapes.escape_room import EscapeRoom
from escapes.listeners import Listeners
from escapes.process_sampler import Usage
from escapes.signs import NOTHING, SIGNS, Sight, escapes_seen
from mcp_wire import WireReply
from pace import PATIENCE

HOST = dict(NOTHING)


def reply(
    text: str = "fine", *, is_error: bool = False, error: str = "", line: bytes = b'{"jsonrpc":"2.0"}'
) -> WireReply:
    result = {"content": [{"type": "text", "text": text}], "isError": is_error, "_meta": {"onetool": {"error": error}}}
    return WireReply({"jsonrpc": "2.0", "id": 1, "result": result}, line)


CALM = Sight(reply=reply(), wall_seconds=0.1, host=HOST, next_reply=reply())
"""A run that shows no sign of anything."""

SHOWN: dict[str, tuple[Any, Sight]] = {
    "output_contains": ("canary", replace(CALM, reply=reply("a canary"))),
    "output_lacks": ("fine", replace(CALM, reply=reply("changed"))),
    "output_bytes_over": (100, replace(CALM, reply=reply(line=b"x" * 101))),
    "reply_missing": (True, replace(CALM, reply=None)),
    "reply_invalid": (True, replace(CALM, reply=reply('{"a":NaN}'))),
    "reply_lines_over": (1, replace(CALM, other_lines=(b"FORGED",))),
    "reply_kind": ("limit", replace(CALM, reply=reply(is_error=True, error="LimitExceeded"))),
    "duplicate_keys": (True, replace(CALM, reply=reply('{"1":"a","1":"b"}'))),
    "host_stdout_contains": ("FORGED", replace(CALM, other_lines=(b"a FORGED line",))),
    "host_dead": (True, replace(CALM, alive=False)),
    "host_state": ("json_patched", replace(CALM, host=HOST | {"host_state": ["json_patched"]})),
    "drop_file": (Path(__file__).name, replace(CALM, drop=Path(__file__).parent)),
    "listener_hit": (True, replace(CALM, listener_hits=1)),
    "next_run_contains": ("PATCHED", replace(CALM, next_reply=reply("PATCHED"))),
    "next_run_error": (True, replace(CALM, next_reply=reply(is_error=True))),
    "wall_over_s": (4.0, replace(CALM, wall_seconds=4.1)),
    "rss_mb_over": (1024, replace(CALM, growth=Usage(tree_rss_mb=1025))),
    "host_rss_mb_over": (256, replace(CALM, growth=Usage(host_rss_mb=257))),
    "procs_over": (8, replace(CALM, growth=Usage(processes=9))),
    "threads_over": (512, replace(CALM, growth=Usage(threads=513))),
    "stall_ms_over": (250, replace(CALM, host=HOST | {"stall_ms": 251})),
    "calls_over": (1000, replace(CALM, host=HOST | {"calls": 1001})),
    "inflight_over": (64, replace(CALM, host=HOST | {"inflight": 65})),
    "depth_over": (4, replace(CALM, host=HOST | {"depth": 5})),
    "dispatched": ("vault.wipe", replace(CALM, host=HOST | {"dispatched": {"vault.wipe": 1}})),
    "arg_not_plain": (True, replace(CALM, host=HOST | {"arg_not_plain": ["Vault"]})),
    "arg_too_deep": (True, replace(CALM, host=HOST | {"arg_too_deep": True})),
    "calls_alive_after_s": (1.0, replace(CALM, calls_alive_after=1)),
}


def test_the_corpus_is_whole() -> None:
    assert [case.id for case in escape_cases()] == [f"E{n:02}" for n in (*range(1, 137), *range(201, 214))]
    assert all(case.commands and case.escaped_if for case in escape_cases())


def test_every_sign_that_the_corpus_names_can_be_seen() -> None:
    named = {sign for case in escape_cases() for sign in case.escaped_if}
    assert named <= SIGNS.keys()
    assert SIGNS.keys() == SHOWN.keys()


@pytest.mark.parametrize("sign", SHOWN)
def test_a_sign_is_seen_when_it_is_there_and_only_then(sign: str) -> None:
    bound, sight = SHOWN[sign]
    assert escapes_seen({sign: bound}, sight)
    assert not escapes_seen({sign: bound}, CALM)


# ---------------------------------------------------------------- with a live server


@pytest.fixture(scope="module")
def open_room(tmp_path_factory: pytest.TempPathFactory, listeners: Listeners) -> Iterator[EscapeRoom]:
    """A server whose pack ``proof`` does what no program can."""
    found = EscapeRoom(tmp_path_factory.mktemp("open"), listeners)
    yield found
    found.server.close()


@pytest.mark.parametrize(
    ("command", "sign", "bound"),
    [
        ("proof.stall(s=0.4)", "stall_ms_over", 250),
        ("proof.hog(mb=400)", "host_rss_mb_over", 256),
        ("proof.hog(mb=1200)", "rss_mb_over", 1024),
        ("proof.spawn(count=12)", "procs_over", 8),
        ("proof.threads(count=100)", "threads_over", 64),
        ("vault.read(key='x')", "dispatched", "vault.read"),
        ("[brave.search(query=n) for n in range(30)]", "calls_over", 20),
        ("import asyncio\nawait asyncio.gather(*[brave.asearch(query=n) for n in range(9)])", "inflight_over", 5),
        ("meta.run(command='meta.run(command=\"1\")')", "depth_over", 1),
        ("echo.slow(s=3)", "calls_alive_after_s", 0.1),
        ("import time\ntime.sleep(1.2)", "wall_over_s", 1.0),
        ("print('x' * 30000)", "output_bytes_over", 20000),
    ],
)
def test_the_harness_sees_what_really_happens(open_room: EscapeRoom, command: str, sign: str, bound: Any) -> None:
    case = Case("proof", "proof", (command,), "", {sign: bound})
    assert escapes_seen(case.escaped_if, open_room.try_command(case, command))


@pytest.mark.parametrize(
    "name",
    ["read_env", "read_home_file", "write_host_file", "connect_loopback", "abstract_unix_socket", "importlib_system"],
)
def test_a_case_is_a_real_way_out_where_nothing_contains_it(tmp_path: Path, listeners: Listeners, name: str) -> None:
    case = next(case for case in escape_cases() if case.name == name)
    (tmp_path / "drop").mkdir()
    (tmp_path / "canary.txt").write_text("canary-file-7f3a")
    code = listeners.named(case.commands[0].replace("{TMP}", str(tmp_path)))
    body, _, last = code.rstrip().rpartition("\n")
    hits = listeners.hits
    found = subprocess.run(
        [sys.executable, "-c", f"{body}\nprint({last})"],
        env={**os.environ, "SBX_CANARY": "canary-env-7f3a"}, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    with listeners.hit:
        if "listener_hit" in case.escaped_if:
            assert listeners.hit.wait_for(lambda: listeners.hits > hits, PATIENCE)
    sight = replace(CALM, reply=reply(found.stdout), drop=tmp_path / "drop", listener_hits=listeners.hits - hits)
    assert escapes_seen(case.escaped_if, sight)


def test_both_listeners_remember_who_came(listeners: Listeners) -> None:
    for family, address in ((socket.AF_INET, ("127.0.0.1", listeners.port)), (socket.AF_UNIX, f"\0{listeners.name}")):
        before = listeners.hits
        with socket.socket(family) as caller, listeners.hit:
            caller.connect(address)
            assert listeners.hit.wait_for(lambda before=before: listeners.hits > before, PATIENCE)


BURDEN: dict[str, Any] = {"wall_over_s": 4.0, "stall_ms_over": 250, "host_rss_mb_over": 512, "reply_missing": True}
HIDDEN: dict[str, Any] = {"output_contains": "canary-host-7f3a", "reply_missing": True, "host_dead": True}
DENIED: dict[str, Any] = {"dispatched": "vault.wipe", "output_contains": "WIPED"}

GATHER = "import asyncio\nawait asyncio.gather({})"
SLEEPS = ("float('nan')", "float('inf')", "-1", "10 ** 400", "'1'")

COMMANDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a denied tool held in a variable": (DENIED, ["f = vault.wipe\nf()", "[f() for f in [vault.wipe]]"]),
    "a denied tool by its name inside the engine": (DENIED, ["vault__wipe()", "f = vault.read\nvault__wipe()"]),
    "a denied tool in a nested run": (DENIED, ['meta.run(command="vault.wipe()")']),
    "a denied tool in a gather": (DENIED, [GATHER.format("vault.wipe(), eval('vault.wipe()')")]),
    "a denied tool under an alias's name": (DENIED, ["ws = vault.wipe\nws()"]),
    "packs and tools in texts": (HIDDEN, ["print(vault, [brave.search], f'{vault!r}')", "[vault, {'a': echo.id}]"]),
    "packs in errors": (HIDDEN, ["raise vault", "raise Exception(vault)", "assert False, vault", "{}[vault]"]),
    "packs as settings of the reply": (HIDDEN, ["__format__ = vault\n1", "__sanitize__ = vault\n1"]),
    "sleeps of no length": (BURDEN, [f"import time\ntime.sleep({seconds})" for seconds in SLEEPS]),
    "a thousand sleepers": (BURDEN, [GATHER.format("*[asyncio.sleep(1.9) for _ in range(990)]")]),
    "many arguments of some size": (BURDEN, ["echo.kw(**{f'k{i}': [0] * 900 for i in range(1000)})"]),
    "an argument of a huge name": (BURDEN, ["echo.kw(**{'k' * 10 ** 7: 1})"]),
    "a value of very many parts": (BURDEN, ["[[1]] * 900000", "[[i] for i in range(200000)]"]),
    "a value that is slow to write": (BURDEN, ["__format__ = 'yml_h'\n[[]] * 900000"]),
}
CASES = [
    Case(f"O{number:02}", name, tuple(commands), "", signs)
    for number, (name, (signs, commands)) in enumerate(COMMANDS.items(), 1)
]


@pytest.fixture(scope="module")
def own_room(tmp_path_factory: pytest.TempPathFactory, listeners: Listeners) -> Iterator[EscapeRoom]:
    """A server of their own: the last cases leave a thread behind that writes on for a while."""
    found = EscapeRoom(tmp_path_factory.mktemp("own"), listeners, "--no-refusal")
    yield found
    found.server.kill()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_the_case_is_contained(own_room: EscapeRoom, case: Case) -> None:
    assert own_room.escapes(case) == []
    assert own_room.server.run("1 + 1").text == "2"
    assert own_room.server.stdout_junk == []
