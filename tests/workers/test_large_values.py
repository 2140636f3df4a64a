"""A worker's large value, the whole way: spooled, stored, paged, searched, read by path; the server stays small."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any

import pytest

from faults.watched import peak_growth_mb, start_wire
from mcp_wire import WireServer
from workers.watched_workers import LONG_CONFIG, WORKER_SERVER, WorkerPlace

LINES, ROWS = 1_000_000, 100_000
PACK = '''
"""A pack whose values are large."""


def text(*, lines: int) -> str:
    """Return lines of a hundred bytes."""
    words = ("needle" if number == lines // 2 else "hay" for number in range(lines))
    return "".join(f"{number:08} {word:>8}{'.' * 82}\\n" for number, word in enumerate(words))


def rows(*, count: int) -> list:
    """Return dicts of about a kilobyte."""
    return [{"id": number, "name": f"row {number}", "pad": "." * 1000} for number in range(count)]


def api(*, count: int) -> dict:
    """Return what an API returns: one key holds nearly all."""
    return {"count": count, "results": rows(count=count), "next": None}
'''


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory, uv_cache: str) -> Generator[WireServer]:
    place = WorkerPlace.furnish(tmp_path_factory.mktemp("large"), LONG_CONFIG, {"large": PACK})
    with start_wire(place, WORKER_SERVER) as started:
        # What only first calls cost: the engine, the worker, the libraries of searches.
        handle = handle_of(started, "large.rows(count=10_000)")
        for query in ("offset=2", "search='a.b'", "search='a', fuzzy=True", "path='[1]'", "outline=True"):
            started.run(f"ot.result(handle='{handle}', {query})")
        yield started


def handle_of(wire: WireServer, call: str) -> str:
    reply = wire.run(call, timeout=60)
    assert reply.is_error, reply.text
    found = re.search(r"ot\.result\(handle='([\w-]+)'\)", reply.text)
    assert found, reply.text
    return found[1]


def ask(wire: WireServer, handle: str, query: str) -> Any:
    reply = wire.run(f"__format__ = 'json'\n[ot.result(handle='{handle}', {query})]", timeout=60)
    assert not reply.is_error, reply.text
    return json.loads(reply.text)[0]


def test_a_text_of_a_hundred_megabytes_is_paged_and_searched(wire: WireServer) -> None:
    def use() -> None:
        handle = handle_of(wire, f"large.text(lines={LINES})")
        page = ask(wire, handle, "limit=2")
        assert page["total_lines"] == LINES
        assert page["lines"][0].startswith("00000000      hay...")
        assert ask(wire, handle, f"offset={LINES}")["lines"][0].startswith(f"{LINES - 1:08}")
        assert ask(wire, handle, "search='needle'")["numbers"] == [LINES // 2 + 1]
        assert ask(wire, handle, "search='^0099999[0-9] +hay'")["returned"] == 10

    assert peak_growth_mb(wire, use) <= 64


def test_a_list_of_a_hundred_megabytes_is_read_by_path(wire: WireServer) -> None:
    def use() -> None:
        handle = handle_of(wire, f"large.rows(count={ROWS})")
        assert ask(wire, handle, "path='[99999].name'") == "row 99999"
        assert ask(wire, handle, "path='[-2:].id'") == [ROWS - 2, ROWS - 1]
        assert ask(wire, handle, "outline=True")["length"] == ROWS
        program = f"rows = ot.result(handle='{handle}', path='[50000:50100]')\nsum(row['id'] for row in rows)"
        assert int(wire.run(program).text) == sum(range(50_000, 50_100))

    assert peak_growth_mb(wire, use) <= 64


def test_the_answer_of_an_api_is_read_by_path_though_one_line_holds_nearly_all(wire: WireServer) -> None:
    def use() -> None:
        handle = handle_of(wire, f"large.api(count={ROWS})")
        outline = ask(wire, handle, "outline=True")
        assert outline["keys"] == {"count": "int", "results": "list", "next": "None"}
        assert ask(wire, handle, "path='results[0:2].id'") == [0, 1]
        assert ask(wire, handle, "path='count'") == ROWS
        assert ask(wire, handle, "path='next'") is None
        refused = wire.run(f"ot.result(handle='{handle}', path='results')", timeout=60)
        assert refused.is_error
        assert "a list of 100,000 items; read on with path='results[0:10]'" in refused.text

    assert peak_growth_mb(wire, use) <= 64


def test_a_handle_that_the_program_got_is_used_in_the_same_program(wire: WireServer) -> None:
    program = """
    try:
        large.rows(count=10_000)
    except RuntimeError as error:
        handle = str(error).split("handle='")[1].split("'")[0]
    page = ot.result(handle=handle, search='row 7777"')
    [page["numbers"], ot.result(handle=handle, path='[7777].id')]
    """
    assert json.loads(wire.run("\n".join(line[4:] for line in program.splitlines())).text) == [[7_778], 7_777]
