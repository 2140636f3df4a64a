"""Ways out that the corpus does not name: through references to tools, names, sleeps, and results that are a burden."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from escapes.cases import Case
from escapes.escape_room import EscapeRoom
from escapes.listeners import Listeners

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
