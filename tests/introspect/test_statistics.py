"""ot.stats(), asked by programs that were counted themselves."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from answers import NO, YES, User
from callers import asking
from ot.config.principal import os_user
from ot.execution.caller import Caller
from ot.log_span import SpanMessage
from ot.stats.query import read_figures
from ot.workspace import Workspace
from pace import PATIENCE
from run_app import BRAVE, error_of, run_in, running_app, value_of
from stats.desk import call_row, sink

pytestmark = pytest.mark.anyio

JSON = "__format__ = 'json'\n"
CONTEXT7 = 'def search(*, query: str) -> str:\n    """Search."""\n    return query\n'
PACKS = {"brave": BRAVE, "context7": CONTEXT7}


async def ask(app: Workspace, call: str) -> Any:
    return json.loads(value_of(await app.run(JSON + call)))


def reports(directory: Path) -> list[Path]:
    return list(directory.rglob("*.html"))


async def use(app: Workspace) -> None:
    """Call brave twice well, once badly, and context7 once."""
    await app.run("[brave.search(query='a' * 1000), brave.search(query='b' * 1000), context7.search(query='c')][-1]")
    assert (await app.run("brave.search(**{'nothing': 1})")).is_error


@pytest.mark.scenario("001-15")
async def test_all_time_is_summed_up(tmp_path: Path) -> None:
    async with running_app(tmp_path, PACKS) as app:
        await use(app)
        found = await ask(app, "ot.stats()")
    assert (found["total_calls"], found["success_count"], found["error_count"]) == (4, 3, 1)
    assert found["success_rate"] == 75.0
    assert found["period"] == "all"
    # "brave found aaa..." twice stayed in the program, as did "c", which was returned.
    kept = 2 * len("brave found " + "a" * 1000)
    failure = found["context_saved_is"].split("+ ")[1].split(" of")[0]
    assert int(failure.replace(",", "")) == kept + 1 - 1
    assert found["context_saved"] == kept // 4
    assert found["time_saved_ms"] == 2 * 2000
    assert {tool["tool"]: tool["calls"] for tool in found["tools"]} == {"brave.search": 3, "context7.search": 1}
    assert {"p50_ms", "p95_ms", "success_rate", "chars_returned"} <= set(found["tools"][0])


@pytest.mark.scenario("001-16")
async def test_each_period_counts_the_calls_that_lie_in_it(tmp_path: Path) -> None:
    earlier = sink(tmp_path / "user" / "stats" / "stats.db", clock=time.time)
    days_ago = 3, 3, 20, 200, 200, 200
    earlier.write([call_row(time.time() - n * 86_400, "brave.search", principal=os_user()) for n in days_ago])
    earlier.write([call_row(time.time(), "brave.search", principal="somebody else")])
    earlier.close()
    async with running_app(tmp_path, PACKS) as app:
        await use(app)
        found = [await ask(app, f"ot.stats(period='{period}')") for period in ("day", "week", "month", "all")]
    for one in found:
        assert one["total_calls"] == sum(tool["calls"] for tool in one["tools"])
    searches = [tool["calls"] for one in found for tool in one["tools"] if tool["tool"] == "brave.search"]
    assert [one["period"] for one in found] == ["day", "week", "month", "all"]
    assert searches == [3, 3 + 2, 3 + 2 + 1, 3 + 2 + 1 + 3]


@pytest.mark.scenario("001-17")
async def test_one_tool_can_be_asked_for(tmp_path: Path) -> None:
    async with running_app(tmp_path, PACKS) as app:
        await use(app)
        found = await ask(app, "ot.stats(tool='brave.search')")
    assert [tool["tool"] for tool in found["tools"]] == ["brave.search"]
    assert (found["tool"], found["total_calls"], found["error_count"]) == ("brave.search", 3, 1)


@pytest.mark.scenario("001-18")
async def test_a_report_is_written_where_the_program_says(tmp_path: Path) -> None:
    async with running_app(tmp_path, PACKS) as app:
        await use(app)
        found = await ask(app, "ot.stats(output='reports/stats.html')")
    file = tmp_path / "work" / "reports" / "stats.html"
    assert found["html_report"] == str(file)
    assert found["total_calls"] == 4
    text = file.read_text()
    assert text.startswith("<!doctype html>")
    assert "brave.search" in text
    assert "brave.web_search" in text.partition("Not called")[2]


@pytest.mark.scenario("001-19")
async def test_disabled_statistics_say_so_and_nothing_is_kept(tmp_path: Path) -> None:
    async with running_app(tmp_path, PACKS, {"stats": {"enabled": False}}) as app:
        await use(app)
        said = value_of(await app.run("ot.stats()"))
        assert (await ask(app, "ot.health()"))["stats"] == {"status": "disabled"}
    assert said.startswith("Error: Statistics are disabled.")
    assert not (tmp_path / "user" / "stats").exists()


@pytest.mark.scenario("001-20")
async def test_a_report_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "report.html").mkdir()
    said = value_of(await run_in(tmp_path, "ot.stats(output='report.html')"))
    assert said == "Error: Cannot write to 'report.html': it is a directory"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/stats.html", "outside the allowed directories"),
        ("../stats.html", "outside the allowed directories"),
        (".onetool/stats.html", "nothing is written below .onetool"),
        (".git/hooks/pre-commit", "nothing is written below .git"),
        (".mcp.json", "client's configuration"),
        ("\0", "NUL"),
    ],
)
async def test_a_report_goes_nowhere_that_a_program_may_not_write(tmp_path: Path, path: str, why: str) -> None:
    said = value_of(await run_in(tmp_path, f"ot.stats(output={path!r})"))
    assert said.startswith(f"Error: Cannot write to '{path}': ")
    assert why in said
    assert reports(tmp_path) == []


async def test_a_report_is_a_write_that_policy_user_and_ledger_know_of(tmp_path: Path) -> None:
    user = User(YES, NO)
    async with running_app(tmp_path, PACKS, {"policy": {"ask": ["file.write"]}}) as app:
        reply = await app.run("ot.stats(output='a.html')", asking(user))
        assert not reply.is_error, reply.texts
        refused = await app.run("ot.stats(output='a.html')", asking(user))
        assert "PermissionError: file.write was not called: the user said no" in error_of(refused)
        assert not (await app.run("ot.stats()", asking(user))).is_error
    with closing(sqlite3.connect(tmp_path / "user" / "ledger" / "ledger.db")) as ledger:
        effects = ledger.execute("SELECT tool, state FROM effects").fetchall()
    assert [question.tool for question in user.questions] == ["file.write", "file.write"]
    assert "path: 'a.html'" in user.questions[0].message
    assert effects == [("file.write", "done")]


@pytest.mark.scenario("001-21")
async def test_an_unknown_period_is_answered_with_those_that_exist(tmp_path: Path) -> None:
    said = value_of(await run_in(tmp_path, "ot.stats(period='invalid')"))
    valid = "Valid: day, week, month, all. Example: ot.stats(period='day')"
    assert said == f"Error: Invalid period 'invalid'. {valid}"


async def test_a_damaged_database_is_no_obstacle(tmp_path: Path) -> None:
    async with running_app(tmp_path, PACKS) as app:
        database = tmp_path / "user" / "stats" / "stats.db"
        database.parent.mkdir(parents=True)
        database.write_text("[1,2]")
        await use(app)
        assert (await ask(app, "ot.stats()"))["total_calls"] == 4
        assert (await ask(app, "ot.health()"))["stats"] == {"status": "ok"}


async def test_the_sizes_and_failures_of_runs_are_kept_by_client(tmp_path: Path) -> None:
    async with running_app(tmp_path, PACKS) as app:
        await app.run("'x' * 50", Caller("me", client="cursor"))
        await app.run("1 / 0", Caller("me", client="cursor"))
        assert app.recorder.flush(PATIENCE)
        figures = read_figures(app.recorder.place.file, "all", 2e9)
    (client,) = figures.clients
    assert (client["client"], client["runs"], client["errors"]) == ("cursor", 2, 1)
    assert figures.runs["chars_in"] == len("'x' * 50") + len("1 / 0")
    assert figures.errors[0]["error_type"] == "ProgramFailed"


async def test_a_cancelled_run_and_its_call_are_kept_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    observed = asyncio.Event()
    stuck = "import asyncio\nasync def wait():\n    print('here')\n    await asyncio.sleep(60)\n"
    async with running_app(tmp_path, {"stuck": stuck}) as app:
        executor = app.picture.runner.executor
        original = executor._carry_out

        async def watched(*arguments: Any) -> Any:
            observed.set()
            return await original(*arguments)

        monkeypatch.setattr(executor, "_carry_out", watched)
        task = asyncio.create_task(app.run("stuck.wait()"))
        await asyncio.wait_for(observed.wait(), PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert app.recorder.flush(PATIENCE)
        figures = read_figures(app.recorder.place.file, "all", 2e9)
    found = {(row["tool"], row["error_type"]): row["count"] for row in figures.errors}
    assert found == {("", "Cancelled"): 1, ("stuck.wait", "Cancelled"): 1}


# ---------------------------------------------------------------- spans


def spans(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [record.msg.fields() for record in caplog.records if isinstance(record.msg, SpanMessage)]


@pytest.mark.scenario("001-24")
@pytest.mark.parametrize("function", ["tools", "packs", "help", "config", "health", "stats", "version", "reload"])
async def test_a_call_of_the_ot_pack_is_a_span_of_its_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, function: str
) -> None:
    with caplog.at_level(logging.INFO):
        await run_in(tmp_path, f"ot.{function}()")
    found = {span["span"]: span for span in spans(caplog)}
    assert found[f"ot.{function}"]["status"] == "SUCCESS"
    assert found["runner.execute"]["run"] == found[f"ot.{function}"]["run"]


@pytest.mark.scenario("001-65")
async def test_a_call_of_ot_result_is_logged_with_what_was_asked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        async with running_app(tmp_path, config={"output": {"max_inline_size": 1000}}) as app:
            handle = json.loads(value_of(await app.run("'line\\n' * 2000")))["handle"]
            await app.run(f"ot.result(handle='{handle}')")
            await app.run(f"ot.result(handle='{handle}', offset=5, limit=2, search='li')")
    plain, searched = [span for span in spans(caplog) if span["span"] == "ot.result"]
    assert (plain["handle"], plain["offset"], plain["limit"]) == (handle, 1, 100)
    assert "search" not in plain
    assert (searched["offset"], searched["limit"], searched["search"]) == (5, 2, "li")


@pytest.mark.scenario("004-02")
async def test_a_tool_call_is_a_span_with_arguments_and_result_and_at_warning_only_a_failed_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for level in (logging.INFO, logging.WARNING):
        caplog.clear()
        with caplog.at_level(level):
            await run_in(tmp_path, "brave.search(q='words')\nbrave.search(**{'bad': 1})", PACKS)
        *good, bad = [span for span in spans(caplog) if span["span"] == "tool.call"]
        assert (bad["errorType"], bad["status"]) == ("InvalidArguments", "FAILED")
        assert "result" not in bad
        told = [(span["tool"], span["arguments"], span["result"], span["resultLen"]) for span in good]
        expected = ("brave.search", "query='words'", "brave found words", len("brave found words"))
        assert told == ([expected] if level == logging.INFO else [])
