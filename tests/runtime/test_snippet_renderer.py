"""Templates are rendered in a process of their own, which is bounded, thrown away and replaced."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import psutil
import pytest

from ot.runtime import snippet_renderer
from ot.runtime.snippet_renderer import SnippetRenderer
from pace import PATIENCE

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def rendering() -> AsyncGenerator[SnippetRenderer]:
    renderer = SnippetRenderer()
    try:
        yield renderer
    finally:
        await renderer.aclose()


def pid_of(renderer: SnippetRenderer) -> int:
    assert renderer._process is not None
    return renderer._process.pid


async def test_a_value_is_left_as_a_mark_for_the_caller_to_place() -> None:
    async with rendering() as renderer:
        reply = await renderer.render("a {{ x }} {{ x | upper }} {{ 1 + 1 }}", {"x": "b"}, "_m_")
    assert reply == {"text": "a _m_0_ _m_1_ _m_2_", "values": ["b", "B", 2]}


NOT_ALLOWED = [
    "{{ ''.__class__.__mro__ }}",
    "{{ x.__init__.__globals__ }}",
    "{% for i in range(10**9) %}{% endfor %}",
    "{{ x.append(1) }}",
    "{{ 'a' * 10**10 }}",
    "{{ nothing }}",
    "{% include '/etc/passwd' %}",
    "{{",
]


async def test_a_template_that_may_not_or_cannot_is_an_error_and_no_more() -> None:
    async with rendering() as renderer:
        for body in NOT_ALLOWED:
            assert "error" in await renderer.render(body, {"x": [1]}, "_m_"), body
            assert (await renderer.render("{{ x }}", {"x": 1}, "_m_"))["values"] == [1], body


async def test_a_template_that_never_ends_is_ended_with_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rendering() as renderer:
        await renderer.render("1", {}, "_m_")
        first = psutil.Process(pid_of(renderer))
        monkeypatch.setattr(snippet_renderer, "RENDER_SECONDS", 0.2)
        endless = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
        with anyio.fail_after(PATIENCE):
            assert (await renderer.render(endless, {}, "_m_"))["error"] == "the template takes too much time or memory"
        assert not first.is_running()
        assert (await renderer.render("2", {}, "_m_"))["text"] == "2"


async def test_a_process_that_was_killed_is_replaced() -> None:
    async with rendering() as renderer:
        await renderer.render("1", {}, "_m_")
        os.kill(pid_of(renderer), signal.SIGKILL)
        assert "error" in await renderer.render("2", {}, "_m_")
        assert (await renderer.render("3", {}, "_m_"))["text"] == "3"


async def test_a_cancelled_rendering_leaves_no_half_answer_behind() -> None:
    async with rendering() as renderer:
        await renderer.render("1", {}, "_m_")
        endless = "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}"
        task = asyncio.create_task(renderer.render(endless, {}, "_m_"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await renderer.render("2", {}, "_m_"))["text"] == "2"


async def test_the_process_knows_nothing_of_the_servers_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "secret")
    async with rendering() as renderer:
        await renderer.render("1", {}, "_m_")
        assert "CANARY" not in psutil.Process(pid_of(renderer)).environ()


async def test_nothing_is_started_before_the_first_snippet_and_nothing_is_left_after() -> None:
    renderer = SnippetRenderer()
    assert renderer._process is None
    await renderer.render("1", {}, "_m_")
    process = psutil.Process(pid_of(renderer))
    await renderer.aclose()
    assert not process.is_running()
    await renderer.aclose()
