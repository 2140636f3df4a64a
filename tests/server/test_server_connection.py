"""Several clients on one host: each is served over a socket of its own, from its first line to its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ot.errors import ConfigError
from server.shared_host import SECONDS, shared_host
from servers.desk import until

pytestmark = pytest.mark.anyio


async def test_a_client_is_served_where_it_works_and_two_do_not_mix(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        for where in ("one", "other"):
            (tmp_path / where).mkdir()
            (tmp_path / where / "note.txt").write_text(f"note of {where}", encoding="utf-8")
        talks = [await shared.client(where) for where in ("one", "other")]
        read = await asyncio.gather(*(talk.run("file.read(path='note.txt')") for talk in talks))
        assert ["note of one" in read[0], "note of other" in read[1]] == [True, True]
        assert ["note of other" in read[0], "note of one" in read[1]] == [False, False]


async def test_a_connection_tells_where_its_client_works_its_name_and_its_open_runs(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        talk = await shared.connect()
        assert "" == talk.connection.state()["client"]
        await talk.initialize()
        await talk.run("1 + 1")
        found = talk.connection.state()
        assert {"cwd": str(tmp_path / "one"), "client": "talk", "runs": 0} == {
            name: found[name] for name in ("cwd", "client", "runs")
        }
        assert 0 < found["since"]


async def test_who_hangs_up_is_let_go_and_the_others_are_served_on(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        gone, stays = await shared.client(), await shared.client()
        await gone.aclose()
        assert "2" == await stays.run("1 + 1")


async def test_a_client_that_is_killed_with_replies_unread_is_let_go(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        killed, stays = await shared.client(), await shared.client()
        killed.hold_reading()
        for _ in range(20):
            killed.start_run("'x' * 40_000")
        await until(lambda: killed.connection.state()["runs"] > 0)
        await until(lambda: killed.connection.state()["runs"] == 0)
        killed.writer.transport.abort()
        await asyncio.wait_for(asyncio.shield(killed.serving), SECONDS)
        assert "2" == await stays.run("1 + 1")


async def test_a_run_ends_with_its_client(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        talk = await shared.client()
        talk.start_run("import time\nwhile True: time.sleep(0.01)")
        await until(lambda: talk.connection.state()["runs"] == 1)
        await talk.aclose()
        assert 0 == talk.connection.state()["runs"]


async def test_what_is_asked_while_a_connection_drains_is_refused_and_what_is_open_is_answered(tmp_path: Path) -> None:
    async with shared_host(tmp_path, {"limits": {"drain_seconds": SECONDS}}) as shared:
        talk = await shared.client()
        gate = tmp_path / "one" / "gate"
        program = "import time\nwhile not file.list(): time.sleep(0.01)\n'done'"
        running = talk.start_run(program)
        await until(lambda: talk.connection.state()["runs"] == 1)
        async with asyncio.timeout(SECONDS):
            draining = asyncio.ensure_future(talk.connection.drain())
            await asyncio.sleep(0)
            assert "ServerEnding" in await talk.run("1 + 1")
            assert not draining.done()
            gate.touch()
            assert "done" in str(await running)
            await draining
        talk.connection.end()
        await asyncio.wait_for(asyncio.shield(talk.serving), SECONDS)


@pytest.mark.parametrize("arguments", [["--http", "8000"], ["--packs"], ["--unknown"]])
async def test_a_command_line_that_is_not_for_a_shared_server_is_refused(tmp_path: Path, arguments: list[str]) -> None:
    async with shared_host(tmp_path) as shared:
        with pytest.raises(ConfigError, match="onetool serve"):
            await shared.connect(arguments=arguments)


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "SSL_CERT_FILE"])
async def test_a_client_behind_another_proxy_or_with_other_certificates_is_refused(tmp_path: Path, name: str) -> None:
    async with shared_host(tmp_path) as shared:
        with pytest.raises(ConfigError, match=f"another value of {name}"):
            await shared.connect(environ={name: "/elsewhere"})


async def test_a_question_that_is_no_longer_asked_is_taken_back_under_its_own_id(tmp_path: Path) -> None:
    async with shared_host(tmp_path, {"policy": {"ask": ["file.write"]}}) as shared:
        talk = await shared.client(elicitation={})
        talk.start_run("file.write(path='f', content='c')")
        question = await talk.question()
        talk.send({"method": "notifications/cancelled", "params": {"requestId": talk.last_id}})
        taken_back = {"requestId": question["id"]}.items()
        await until(lambda: any(taken_back <= told["params"].items() for told in talk.notifications))


async def test_packs_of_the_command_line_are_offered_tool_by_tool(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        talk = await shared.connect(arguments=["--shared", "--packs=file"])
        await talk.initialize()
        names = {tool["name"] for tool in (await talk.result("tools/list"))["tools"]}
        assert {"run", "file_read"} <= names
