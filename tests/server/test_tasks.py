"""MCP tasks: a call becomes a run in the background where its client wishes that, and answers for it by its id."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from mcp import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ElicitResult,
    TaskMetadata,
)

from background.run_desk import ME, Desk, desk
from ot.ledger.background_run import BackgroundRun
from ot.server.drain import Drain
from ot.server.mcp_server import OneUser, build_server
from server.task_talk import EXTENSION, WISH, ClaimedTask, SpeaksTasks, TaskTalk, task_client, text_of

pytestmark = pytest.mark.anyio

ASKS: Mapping[str, Any] = {"policy": {"read_only": ["counter.look"], "ask": ["counter.add*"]}}
YES: Mapping[str, Any] = {"action": "accept", "content": {"decision": "allow"}}


async def nobody(*_: Any) -> ElicitResult:
    """Stand for a user who is never asked: tasks ask by being polled."""
    raise AssertionError("asked by a request")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Desk]:
    """A process that carries out runs, whose tool ``counter.add`` asks first."""
    async with desk(tmp_path, config=ASKS) as house:
        yield house


@pytest.fixture
def server(house: Desk) -> FastMCP:
    return build_server(OneUser(house.workspace), "1.2.3")


@pytest.fixture
async def talk(server: FastMCP) -> AsyncIterator[TaskTalk]:
    """A client that speaks tasks and can ask its user."""
    async with task_client(server, elicitation_handler=nobody) as talk:
        yield talk


def ledger_of(house: Desk) -> Path:
    """Return where the ledger is, once anything was written or looked for."""
    return house.workspace.paths.global_dir / "ledger"


# ---------------------------------------------------------------- from the call to the result


async def test_a_wished_task_is_known_at_once_and_ends_with_what_the_call_would_have_returned(
    house: Desk, talk: TaskTalk
) -> None:
    task = await talk.call("counter.look() + 40")
    assert isinstance(task, ClaimedTask)
    assert task.status == "working"
    assert task.ttl_ms == 30 * 24 * 3600 * 1000
    assert task.poll_interval_ms == 1000
    working = await talk.get(task.task_id)
    assert working["status"] == "working"
    assert "result" not in working
    house.counter.gate.set()
    done = await talk.until(task.task_id, "completed")
    assert done["resultType"] == "complete"
    assert done["createdAt"] == task.created_at
    assert done["result"]["isError"] is False
    assert text_of(done["result"]) == "40"
    assert text_of(await talk.call("counter.look() + 40", {})) == "40"


async def test_the_id_of_a_task_is_the_id_of_its_run(house: Desk, talk: TaskTalk) -> None:
    id = await talk.begin("6 * 7")
    await talk.until(id, "completed")
    status = await house.status(id)
    assert (status.run.principal, status.run.command, status.state) == (ME, "6 * 7", "done")
    assert "42" in text_of(await talk.call(f"ot.run_state(id='{id}')", {}))


async def test_a_client_that_waits_for_its_tasks_sees_only_the_result(server: FastMCP) -> None:
    async with Client(server, extensions=[SpeaksTasks()]) as client:
        found = await client.call_tool("run", {"command": "6 * 7"}, meta=dict(WISH))
    assert text_of(found) == "42"


async def test_a_program_that_fails_completes_with_an_error(talk: TaskTalk) -> None:
    task = await talk.until(await talk.begin("1 / 0"), "completed")
    assert task["result"]["isError"] is True
    assert "ZeroDivisionError" in text_of(task["result"])
    assert task["result"]["_meta"]["onetool"]["state"] == "failed"


async def test_a_program_that_cannot_be_read_begins_no_task(house: Desk, talk: TaskTalk) -> None:
    found = await talk.call("1 +")
    assert isinstance(found, CallToolResult)
    assert found.is_error
    assert "no run was begun" in text_of(found)
    assert [] == await house.book.runs(ME)


async def test_a_task_has_no_session(house: Desk, talk: TaskTalk) -> None:
    found = await talk.call("x = 1", session="mine")
    assert "a task has no session: nothing has run" in text_of(found)
    assert [] == await house.book.runs(ME)


async def test_where_nobody_carries_out_runs_a_wish_is_refused(house: Desk, talk: TaskTalk) -> None:
    house.workspace.goes_on = False
    found = await talk.call("6 * 7")
    assert "nothing here carries out runs in the background" in text_of(found)
    assert found.meta["onetool"]["error"] == "ValueError"


async def test_a_server_that_is_ending_begins_no_task(house: Desk) -> None:
    drain = Drain()
    async with task_client(build_server(OneUser(house.workspace), "1", drain=drain)) as talk:
        drain.begin()
        assert "ServerEnding" in text_of(await talk.call("6 * 7"))
    assert [] == await house.book.runs(ME)


# ---------------------------------------------------------------- only by the client's own wish


@pytest.mark.parametrize("meta", [{}, {"onetool": {}}, {"onetool": {"task": "yes"}}, {"onetool": {"task": False}}])
async def test_a_client_that_speaks_tasks_but_wishes_none_is_answered_at_once(
    house: Desk, talk: TaskTalk, meta: dict[str, Any]
) -> None:
    found = await talk.call("6 * 7", meta)
    assert isinstance(found, CallToolResult)
    assert text_of(found) == "42"
    assert not ledger_of(house).exists()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_wish_of_a_client_that_does_not_speak_tasks_makes_none(house: Desk, server: FastMCP, mode: Any) -> None:
    async with Client(server, mode=mode) as client:
        assert text_of(await client.call_tool("run", {"command": "6 * 7"}, meta=dict(WISH))) == "42"
    assert not ledger_of(house).exists()


async def test_the_task_parameter_of_the_older_revision_makes_none(house: Desk, server: FastMCP) -> None:
    for mode in ("auto", "legacy"):
        async with Client(server, mode=mode, extensions=[SpeaksTasks()]) as client:  # pyright: ignore[reportArgumentType] - two of ConnectMode's values
            params = CallToolRequestParams(name="run", arguments={"command": "6 * 7"}, task=TaskMetadata(ttl=60_000))
            found = await client.session.send_request(CallToolRequest(params=params), CallToolResult)
            assert text_of(found) == "42"
    assert not ledger_of(house).exists()


async def test_clients_of_the_handshake_era_see_nothing_of_it(server: FastMCP) -> None:
    async with Client(server, mode="legacy", extensions=[SpeaksTasks()]) as client:
        assert client.initialize_result is not None
        offered = client.initialize_result.capabilities.model_dump(exclude_none=True)
        assert not offered.keys() & {"extensions", "tasks"}
        with pytest.raises(MCPError) as caught:
            await TaskTalk(client.session).get("anything")
        assert caught.value.code == METHOD_NOT_FOUND


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_who_speaks_tasks_is_shown_the_same_tools_as_all_others(server: FastMCP, mode: Any) -> None:
    lists: list[str] = []
    for extensions in ([], [SpeaksTasks()]):
        async with Client(server, mode=mode, extensions=extensions) as client:
            (tool,) = await client.list_tools()
            lists.append(tool.model_dump_json(by_alias=True, exclude_none=True))
            assert tool.execution is None
    assert lists[0] == lists[1]


async def test_a_request_about_tasks_must_declare_the_extension(server: FastMCP) -> None:
    async with Client(server) as client:
        with pytest.raises(MCPError) as caught:
            await TaskTalk(client.session).get("anything")
    assert caught.value.code == MISSING_REQUIRED_CLIENT_CAPABILITY
    assert caught.value.data == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}


# ---------------------------------------------------------------- questions


async def test_what_a_task_asks_is_answered_by_an_update(house: Desk, talk: TaskTalk) -> None:
    id = await talk.begin("counter.add(n=4)")
    task = await talk.until(id, "input_required")
    ((key, request),) = task["inputRequests"].items()
    assert request["method"] == "elicitation/create"
    assert "counter.add" in request["params"]["message"]
    assert "decision" in request["params"]["requestedSchema"]["properties"]
    assert house.counter.added == []
    await talk.ask("tasks/update", id, {"another": YES})
    assert (await talk.get(id))["status"] == "input_required"
    assert (await talk.ask("tasks/update", id, {key: YES}))["resultType"] == "complete"
    assert (await talk.get(id))["status"] != "input_required"  # or a client would put it to its user again
    done = await talk.until(id, "completed")
    assert text_of(done["result"]) == "8"
    assert house.counter.added == [4]


@pytest.mark.parametrize("answer", [{"action": "decline"}, {"action": "cancel"}])
async def test_a_no_is_a_no_and_a_second_answer_does_not_count(
    house: Desk, talk: TaskTalk, answer: dict[str, Any]
) -> None:
    id = await talk.begin("counter.add(n=4)")
    (key,) = (await talk.until(id, "input_required"))["inputRequests"]
    await talk.ask("tasks/update", id, {key: answer})
    await talk.ask("tasks/update", id, {key: YES})
    done = await talk.until(id, "completed")
    assert done["result"]["isError"] is True
    assert "counter.add was not called" in text_of(done["result"])
    assert house.counter.added == []


async def test_no_two_questions_of_a_task_have_the_same_key(house: Desk, talk: TaskTalk) -> None:
    id = await talk.begin("counter.add(n=1)\ncounter.add_slowly(n=2)")
    house.counter.slow.set()
    asked: dict[str, str] = {}
    while (task := await talk.until(id, "input_required", "completed"))["status"] == "input_required":
        ((key, request),) = task["inputRequests"].items()
        assert asked.setdefault(key, request["params"]["message"]) == request["params"]["message"]
        await talk.ask("tasks/update", id, {key: YES})
    assert len(set(asked.values())) == 2
    assert house.counter.added == [1, 2]


async def test_a_malformed_answer_is_refused_and_the_task_still_asks(talk: TaskTalk) -> None:
    id = await talk.begin("counter.add(n=4)")
    (key,) = (await talk.until(id, "input_required"))["inputRequests"]
    with pytest.raises(MCPError) as caught:
        await talk.ask("tasks/update", id, {key: {"action": "perhaps"}})
    assert caught.value.code == INVALID_PARAMS
    assert (await talk.get(id))["status"] == "input_required"


async def test_a_client_that_cannot_ask_is_told_who_can(house: Desk, server: FastMCP) -> None:
    async with task_client(server) as talk:
        id = await talk.begin("counter.add(n=4)")
        await house.until(id, "asks")
        task = await talk.get(id)
        assert task["status"] == "working"
        assert f"onetool answer {id}" in task["statusMessage"]


# ---------------------------------------------------------------- cancelling, and whose it is


async def test_a_task_that_is_cancelled_stops_its_run(house: Desk, talk: TaskTalk) -> None:
    id = await talk.begin("counter.look()")
    await house.counter.came.wait()
    assert (await talk.ask("tasks/cancel", id))["resultType"] == "complete"
    cancelled = await talk.until(id, "cancelled")
    assert "result" not in cancelled
    assert (await talk.ask("tasks/cancel", id))["resultType"] == "complete"
    assert (await house.status(id)).state == "cancelled"


async def test_somebody_elses_task_is_told_like_one_that_never_was(house: Desk, talk: TaskTalk) -> None:
    await house.book.add(BackgroundRun("theirs", "somebody else", "1", 1.0), 10)
    errors: set[tuple[int, str]] = set()
    for id in ("theirs", "never-was"):
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            with pytest.raises(MCPError) as caught:
                await talk.ask(method, id, {})
            errors.add((caught.value.code, caught.value.message))
    assert errors == {(INVALID_PARAMS, "no task with this id")}
    status = await house.book.status("somebody else", "theirs")
    assert status is not None
    assert not status.cancelled


async def test_an_unavailable_ledger_is_told_as_that_and_not_as_an_unknown_task(house: Desk, talk: TaskTalk) -> None:
    ledger_of(house).write_text("a file where a directory should be")
    made = await talk.call("6 * 7")
    assert isinstance(made, CallToolResult)
    assert made.is_error
    assert "LedgerUnavailable" in text_of(made)
    with pytest.raises(MCPError, match="LedgerUnavailable") as caught:
        await talk.ask("tasks/cancel", "anything")
    assert caught.value.code == INTERNAL_ERROR


async def test_what_the_extension_has_dropped_is_not_there(talk: TaskTalk) -> None:
    for method in ("tasks/list", "tasks/result"):
        with pytest.raises(MCPError) as caught:
            await talk.ask(method, "anything")
        assert caught.value.code == METHOD_NOT_FOUND
