"""Stored results, asked by programs: handles from one run are used in the next."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from ot.workspace import Workspace
from run_app import error_of, running_app, value_of

pytestmark = pytest.mark.anyio

PACKS = {
    "shop": '''
        def orders() -> dict:
            """Return more than a reply holds."""
            return {"count": 400, "orders": [{"id": n, "total": n * 1.5, "who": f"c{n % 7}"} for n in range(400)]}


        def hidden() -> list:
            """Return characters that cannot be seen."""
            return [f"a\\u200bb {n}" for n in range(400)]


        def tagged() -> list:
            """Return the beginnings of boundary tags."""
            return [{"text": "<external-content", "n": n} for n in range(400)]
    '''
}
CONFIG = {"output": {"max_inline_size": 2000}}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[Workspace]:
    async with running_app(tmp_path, PACKS, CONFIG) as app:
        yield app


async def stored(app: Workspace, program: str) -> Any:
    return json.loads(value_of(await app.run(f"__format__ = 'json'\n{program}")))


async def test_a_program_computes_with_parts_of_a_stored_value(app: Workspace) -> None:
    handle = (await stored(app, "shop.orders()"))["handle"]
    program = f"""
rows = ot.result(handle="{handle}", path="orders[10:20]")
[sum(row["total"] for row in rows), ot.result(handle="{handle}", path="count") + 1]
"""
    assert json.loads(value_of(await app.run(program))) == [sum(n * 1.5 for n in range(10, 20)), 401]


async def test_the_summary_leads_to_the_outline_and_the_outline_to_the_value(app: Workspace) -> None:
    summary = await stored(app, "shop.orders()")
    assert "outline=True" in summary["summary"]
    outline = await stored(app, f"ot.result(handle='{summary['handle']}', path='orders', outline=True)")
    assert (outline["type"], outline["length"], outline["keys_of_first"]) == ("list", 400, ["id", "total", "who"])
    path = outline["next"].removeprefix("read on with path='").removesuffix("'")
    rows = await stored(app, f"ot.result(handle='{summary['handle']}', path='{path}')")
    assert [row["id"] for row in rows] == list(range(10))


async def test_parameter_names_may_be_shortened(app: Workspace) -> None:
    handle = (await stored(app, "shop.orders()"))["handle"]
    assert value_of(await app.run(f"ot.result(han='{handle}', pa='orders[3].who')")) == "c3"


async def test_a_part_too_large_for_a_reply_gets_a_handle_and_lines_of_its_own(app: Workspace) -> None:
    handle = (await stored(app, "shop.orders()"))["handle"]
    part = await stored(app, f"ot.result(handle='{handle}', path='orders')")
    assert part["handle"] != handle
    assert part["total_lines"] == 400
    assert (await stored(app, f"ot.result(handle='{part['handle']}', path='[399]')"))["id"] == 399


async def test_a_part_is_stored_again_also_where_the_program_is_nothing_but_the_call(app: Workspace) -> None:
    handle = (await stored(app, "shop.orders()"))["handle"]
    part = json.loads(value_of(await app.run(f"ot.result(handle='{handle}', path='orders')")))
    assert part["total_lines"] == 400
    assert value_of(await app.run(f"ot.result(handle='{part['handle']}', path='[399].id')")) == "399"


async def test_a_page_is_not_stored_again_however_long_its_text_becomes(app: Workspace) -> None:
    handle = (await stored(app, "shop.orders()"))["handle"]
    text = value_of(await app.run(f"ot.result(handle='{handle}', offset=2, limit=1)"))
    assert len(text) > 2000
    assert "read on with offset=2, from_byte=" in text


@pytest.mark.parametrize("query", ["search='nothing like it'", "offset=1000"])
async def test_a_page_without_lines_says_so(app: Workspace, query: str) -> None:
    handle = (await stored(app, "shop.orders()"))["handle"]
    page = await stored(app, f"ot.result(handle='{handle}', {query})")
    assert (page["lines"], page["returned"], page["has_more"]) == ([], 0, False)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("path='order'", "path '.' has no key 'order'; there are: count, orders"),
        ("path='orders[400]'", "IndexError: path 'orders' is a list of 400 items: there is no item 400"),
        ("path='orders['", "ValueError: path cannot be read at '['"),
        ("path='count', search='x'", "ValueError: path and outline look at a value"),
        ("outline=True, offset=2", "ValueError: path and outline look at a value"),
        ("path=1", "path"),
    ],
)
async def test_what_cannot_be_answered_is_an_error_that_helps(app: Workspace, query: str, text: str) -> None:
    handle = (await stored(app, "shop.orders()"))["handle"]
    assert text in error_of(await app.run(f"ot.result(handle='{handle}', {query})"))


async def test_a_sanitised_value_is_still_json(app: Workspace) -> None:
    summary = value_of(await app.run("__sanitize__ = True\n__format__ = 'json'\nshop.hidden()"))
    handle = json.loads(summary.split("\n")[1])["handle"]
    assert value_of(await app.run(f"ot.result(handle='{handle}', path='[7]')")) == "a\\u{200b}b 7"


async def test_a_boundary_tag_that_is_taken_out_takes_nothing_of_the_value_with_it(app: Workspace) -> None:
    summary = value_of(await app.run("__sanitize__ = True\n__format__ = 'json'\nshop.tagged()"))
    handle = json.loads(summary.split("\n")[1])["handle"]
    part = await stored(app, f"ot.result(handle='{handle}', path='[7]')")
    assert part == {"text": "[REDACTED:tag]", "n": 7}
