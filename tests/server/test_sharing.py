"""What clients on one host share, and what never reaches another: whatever one does, the others are as if alone."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ot.relay.tracking import KEPT
from ot.server.incoming_line import read_message
from ot.server.wire import MAX_MESSAGE_BYTES
from pace import TURNS
from proxied.desk import fake, until
from server.shared_host import SECONDS, SharedHost, SocketTalk, shared_host, text_of

pytestmark = pytest.mark.anyio

PACK = '''
import os


def pid() -> int:
    """Return the process that it runs in."""
    return os.getpid()
'''
BY_CLIENT = {"policy": {"questions": "client"}}
WAITING = "import time\nwhile not file.list(): time.sleep(0.01)\n'done'"
ANSWER: dict[str, Any] = {"action": "accept", "content": {"name": "Ann"}}


def add_pack(shared: SharedHost, where: str) -> Path:
    return shared.write(f"{where}/.onetool/tools/near/near_tools.py", PACK)


def servers(**settings: Any) -> dict[str, Any]:
    return {"servers": {"fake": fake(**settings)}}


async def server_pid(talk: SocketTalk) -> int:
    return json.loads(await talk.run("fake.pid()"))["pid"]


# ---------------------------------------------------------------- what belongs to one client


async def test_sessions_of_one_name_are_apart(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        one, other = await shared.client(), await shared.client()
        await one.run("x = 1", session="s")
        assert "NameError" in await other.run("x", session="s")
        assert "1" == await one.run("x", session="s")


async def test_what_would_be_lost_with_a_client_s_own_server_is_known(tmp_path: Path) -> None:
    async with shared_host(tmp_path, servers(scope="private")) as shared:
        talk = await shared.client()
        kept = talk.connection.workspace.list_kept
        await talk.run("1 + 1")
        assert kept() == []
        await talk.run("x = 1", session="s")
        assert kept() == ["sessions"]
        await talk.run("ot.session(name='s', action='clear')")
        await talk.run("fake.pid()")
        assert kept() == ["servers that keep state"]
        await talk.run(f"ot.background(command={WAITING!r})")
        assert "background runs" in kept()
        running = talk.start_run(WAITING)
        await until(lambda: "runs" in kept())
        shared.write("one/go.txt", "")
        await running
        await until(lambda: kept() == ["servers that keep state"])
        async with asyncio.timeout(SECONDS):
            asked = await talk.ask(KEPT)
        assert "error" in asked, "only a relay whose client is alone may ask"


async def test_a_secret_of_one_client_s_environment_never_reaches_another(tmp_path: Path) -> None:
    async with shared_host(tmp_path, servers(env={"TOKEN": "${TOKEN}"})) as shared:
        tokens = "token-of-one-client", "token-of-the-other"
        one, other = [await shared.client(environ={"TOKEN": token}) for token in tokens]
        for talk, own in ((one, tokens[0]), (other, tokens[1])):
            process = psutil.Process(await server_pid(talk))
            assert own == process.environ()["TOKEN"]
        for command in ("fake.environ()", "ot.config()", "ot.health()"):
            assert tokens[0] not in await other.run(command)


async def test_a_reply_is_redacted_for_its_own_client_alone_and_the_log_for_all(tmp_path: Path) -> None:
    async with shared_host(tmp_path, servers(env={"TOKEN": "${TOKEN}"})) as shared:
        one = await shared.client(environ={"TOKEN": "token-of-one-client"})
        other = await shared.client(environ={"TOKEN": "token-of-the-other"})
        said = "'token-of-' + 'one-client'"
        assert "[secret:TOKEN]" == await one.run(said)
        assert "token-of-one-client" == await other.run(said)  # to redact it would tell that somebody has it
        line = "token-of-one-client and token-of-the-other"
        assert "[secret:TOKEN] and [secret:TOKEN]" == shared.host.redaction.redact(line)
        await one.aclose()
        assert "[secret:TOKEN] and [secret:TOKEN]" == shared.host.redaction.redact(line)
        for _ in range(40):  # those that come and go with the same secrets take no other's place
            again = await shared.client(environ={"TOKEN": "token-of-the-other"})
            await again.aclose()
        assert "[secret:TOKEN] and [secret:TOKEN]" == shared.host.redaction.redact(line)


async def test_a_handle_of_another_project_is_not_found(tmp_path: Path) -> None:
    async with shared_host(tmp_path, {"output": {"max_inline_size": 500}}) as shared:
        for where in ("one", "other"):
            shared.write(f"{where}/.onetool/onetool.yaml", "{}")
        one, other = await shared.client("one"), await shared.client("other")
        handle = json.loads(await one.run("['kept'] * 1000"))["handle"]
        assert "kept" in await one.run(f"ot.result(handle='{handle}', limit=1)")
        assert "kept" not in await other.run(f"ot.result(handle='{handle}', limit=1)")


# ---------------------------------------------------------------- workers and servers


async def test_a_reload_of_one_client_leaves_the_workers_of_another(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        packs = [add_pack(shared, where) for where in ("one", "other")]
        one, other = await shared.client("one"), await shared.client("other")
        before = await other.run("near.pid()")
        packs[0].unlink()
        await one.run("ot.reload()")
        assert (await one.start_run("near.pid()"))["result"]["isError"]
        assert before == await other.run("near.pid()")


async def test_clients_of_one_environment_share_a_worker_and_one_of_another_path_has_its_own(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        add_pack(shared, "one")
        one, twin = await shared.client(), await shared.client()
        stranger = await shared.client(environ={"PATH": "/elsewhere"})
        assert await one.run("near.pid()") == await twin.run("near.pid()")
        assert await one.run("near.pid()") != await stranger.run("near.pid()")


async def test_servers_of_one_name_and_different_settings_are_two(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        for where in ("one", "other"):
            config = servers(env={"WHERE": where})
            shared.write(f"{where}/.onetool/onetool.yaml", json.dumps(config))
        for where in ("one", "other"):
            process = psutil.Process(await server_pid(await shared.client(where)))
            assert where == process.environ()["WHERE"]


@pytest.mark.parametrize(
    ("scope", "same_directory", "another"),
    [("workspace", True, False), ("shared", True, True), ("private", False, False)],
)
async def test_a_server_s_scope_says_which_clients_share_it(
    tmp_path: Path, scope: str, same_directory: bool, another: bool
) -> None:
    async with shared_host(tmp_path, servers(scope=scope)) as shared:
        one, twin, other = [await shared.client(where) for where in ("one", "one", "other")]
        found = await server_pid(one)
        assert same_directory == (found == await server_pid(twin))
        assert another == (found == await server_pid(other))


async def test_a_private_server_ends_with_its_client_and_a_shared_one_with_the_last(tmp_path: Path) -> None:
    config = {"servers": {"own": fake(scope="private"), "fake": fake()}}
    async with shared_host(tmp_path, config) as shared:
        one, other = await shared.client(), await shared.client()
        own = json.loads(await one.run("own.pid()"))["pid"]
        common = await server_pid(one)
        await one.aclose()
        await until(lambda: not psutil.pid_exists(own))
        assert common == await server_pid(other)
        await other.aclose()
        await until(lambda: not psutil.pid_exists(common))


async def test_a_server_for_all_cannot_work_in_the_workspace_of_one(tmp_path: Path) -> None:
    async with shared_host(tmp_path, servers(scope="shared", env={"HERE": "${workspace}"})) as shared:
        assert "servers.fake.scope is shared" in await (await shared.client()).run("fake.pid()")


# ---------------------------------------------------------------- questions


async def test_a_server_that_several_use_asks_nobody_and_from_then_on_each_has_one_of_its_own(tmp_path: Path) -> None:
    async with shared_host(tmp_path, servers()) as shared:
        one, other = [await shared.client(elicitation={}) for _ in range(2)]
        assert await server_pid(one) == await server_pid(other)
        assert '"cancel"' in await one.run("fake.ask()")
        assert one.questions.empty() and other.questions.empty()
        assert await server_pid(one) != await server_pid(other)
        running = one.start_run("fake.ask()")
        question = await one.question()
        one.send({"id": question["id"], "result": ANSWER})
        assert "Ann" in text_of(await asyncio.wait_for(running, SECONDS))
        assert other.questions.empty()


async def test_that_a_server_asks_is_known_at_the_next_start(tmp_path: Path) -> None:
    for expected in (True, False):
        async with shared_host(tmp_path, {**servers(), **BY_CLIENT}) as shared:
            one, other = await shared.client(), await shared.client()
            assert expected == (await server_pid(one) == await server_pid(other))
            await one.run("fake.ask()")


async def test_a_server_is_told_the_roots_of_no_client_but_its_own(tmp_path: Path) -> None:
    async with shared_host(tmp_path, servers()) as shared:
        one, other = [await shared.client(roots={}) for _ in range(2)]
        command = "import json\n[root['uri'] for root in json.loads(fake.roots())['r1']['roots']]"
        assert [(tmp_path / "one").as_uri()] == json.loads(await one.run(command))  # used by both: the directory
        for talk, uri in ((one, "file:///srv/one"), (other, "file:///srv/other")):
            running = talk.start_run(command)
            question = await talk.question()
            assert "roots/list" == question["method"]
            talk.send({"id": question["id"], "result": {"roots": [{"uri": uri}]}})
            assert [uri] == json.loads(text_of(await asyncio.wait_for(running, SECONDS)))


async def test_a_server_that_all_share_is_told_no_roots(tmp_path: Path) -> None:
    async with shared_host(tmp_path, servers(scope="shared")) as shared:
        talk = await shared.client(roots={})
        assert "roots" not in json.loads(await talk.run("fake.roots()"))["r1"]
        assert talk.questions.empty()


async def test_a_server_that_asked_for_roots_can_be_shared_by_all_who_then_tell_it_none(tmp_path: Path) -> None:
    async with shared_host(tmp_path, servers()) as shared:
        await (await shared.client()).run("fake.roots()")
        assert 1 == shared.host.servers.asking.count
    async with shared_host(tmp_path, servers(scope="shared")) as shared:
        one, other = [await shared.client(where) for where in ("one", "other")]
        assert await server_pid(one) == await server_pid(other)


async def test_consent_is_asked_of_whoever_runs_and_the_answer_of_another_is_dropped(tmp_path: Path) -> None:
    config = {"policy": {"ask": ["file.write"], **BY_CLIENT["policy"]}}
    async with shared_host(tmp_path, config) as shared:
        one, other = [await shared.client(elicitation={}) for _ in range(2)]
        running = [talk.start_run("file.write(path='f', content='c')") for talk in (one, other)]
        asked = [await talk.question() for talk in (one, other)]
        assert asked[0]["id"] != asked[1]["id"]
        # As a client would that still answers what a server asked which is gone.
        other.send({"id": asked[0]["id"], "result": {"action": "accept", "content": {"answer": "once"}}})
        await other.ping()
        assert not running[1].done()
        for talk, question in zip((one, other), asked, strict=True):
            talk.send({"id": question["id"], "result": {"action": "decline"}})
        for run in running:
            assert (await asyncio.wait_for(run, SECONDS))["result"]["isError"]
        assert not (tmp_path / "one" / "f").exists()


# ---------------------------------------------------------------- load


async def test_fifty_runs_of_one_client_leave_room_for_another(tmp_path: Path) -> None:
    async with shared_host(tmp_path, {"engines": {"use": "portable", "portable": {"processes": 4}}}) as shared:
        greedy, other = await shared.client("greedy"), await shared.client("other")
        waiting = [greedy.start_run(WAITING) for _ in range(50)]
        await until(lambda: greedy.connection.state()["runs"] == 50)
        assert "2" == await other.run("1 + 1")
        assert not any(run.done() for run in waiting)
        shared.write("greedy/gate", "")
        for run in waiting:
            assert "done" == text_of(await asyncio.wait_for(run, SECONDS))


async def test_a_run_beyond_a_client_s_half_of_the_engine_is_told_so(tmp_path: Path) -> None:
    pool = {"processes": 2, "queue_seconds": 0.1}
    async with shared_host(tmp_path, {"engines": {"use": "portable", "portable": pool}}) as shared:
        talk = await shared.client()
        running = talk.start_run(WAITING)
        await until(lambda: talk.connection.state()["runs"] == 1)
        await until_in_engine(shared)
        assert "this client's programs hold half of the engine's processes" in await talk.run("1 + 1")
        shared.write("one/gate", "")
        assert "done" == text_of(await asyncio.wait_for(running, SECONDS))


async def until_in_engine(shared: SharedHost) -> None:
    """Return when a program runs."""
    (engine,) = shared.host.engines()
    async with asyncio.timeout(SECONDS):
        while not (await engine.health()).details["running"]:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.005)


async def test_a_client_that_reads_nothing_holds_up_nobody_and_misses_nothing(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        stopped, other = await shared.client(), await shared.client()
        control = await usual_ping(other)
        stopped.hold_reading()
        waiting = [stopped.start_run("'x' * 40_000") for _ in range(200)]
        for number in range(20):
            assert str(number) == await other.run(f"{number}")
        assert await usual_ping(other) < 20 * control
        assert not any(run.done() for run in waiting)
        stopped.resume_reading()
        for run in waiting:
            assert "x" * 40_000 == text_of(await asyncio.wait_for(run, SECONDS))


async def usual_ping(talk: SocketTalk) -> float:
    return statistics.median([await talk.ping() for _ in range(20)])


def long_line(command: object) -> bytes:
    """Return a run of *command*, whatever that is, as a line."""
    params = {"name": "run", "arguments": {"command": command}}
    return (
        json.dumps(
            {"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": params}, separators=(",", ":")
        ).encode()
        + b"\n"
    )


TEXTS = {"plain": "x" * (MAX_MESSAGE_BYTES - 1000), "escaped": "\n" * (MAX_MESSAGE_BYTES // 2 - 1000)}
MANY_PARTS = long_line([[]] * (700_000))


@pytest.mark.parametrize("line", [*map(long_line, TEXTS.values()), MANY_PARTS], ids=[*TEXTS, "many parts"])
async def test_a_long_message_is_answered_and_holds_up_nobody(tmp_path: Path, line: bytes) -> None:
    async with shared_host(tmp_path) as shared:
        one, other = await shared.client(), await shared.client()
        longest = 0.0
        for _ in range(TURNS):
            answer = one.send_line("long", line)
            longest = max([await other.ping() async for _ in while_open(answer)])
            # What others would wait for if the event loop read a message of two megabytes itself.
            control = time.perf_counter()
            read_message(MANY_PARTS)
            if longest < 0.5 * (time.perf_counter() - control):
                return
        pytest.fail(f"a ping took {longest:.3f} s")


async def while_open(answer: asyncio.Future[dict[str, Any]]) -> AsyncIterator[None]:
    """Yield once, and again until *answer* is there."""
    async with asyncio.timeout(SECONDS):
        yield
        while not answer.done():
            yield
    assert "error" in (found := await answer) or found["result"]["isError"]
