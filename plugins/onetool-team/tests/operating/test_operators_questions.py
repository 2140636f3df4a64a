"""Every question that who operates a team's server asks has an answer by one command; and a person can be forgotten."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastmcp.client.elicitation import ElicitResult

from onetool_team.ledger.postgres_sessions import PostgresSessions
from onetool_team.logins.shared_token_store import SharedTokenStore
from onetool_team.postgres.logins import PostgresLogins
from onetool_team.postgres.team_rows import TeamRows
from onetool_team.telemetry.keyed_hash import KeyedHash
from onetool_team.workspaces import PEOPLE, directory_name
from operating.operated_team import OperatedTeam, operated_team
from ot.config.load import load_config
from ot.config.paths import Paths
from ot.config.trust import Trust
from ot.proxied.auth.token_record import TokenRecord
from ot.proxied.spec import resolve_specs
from pace import PATIENCE
from team.whole_team import canary

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

ANN, BOB = "token|ann", "token|bob"
LONG = "ot.version()"
"""In the background, until somebody answers what it asks."""


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Generator[OperatedTeam]:
    with operated_team(tmp_path_factory.mktemp("operated")) as running:
        yield running


def background(operated: OperatedTeam, name: str, command: str) -> str:
    """Return the id of a run that *name* leaves to a worker."""
    return operated.run(name, f"ot.background(command={command!r})['id']")


def whole_lines(text: str) -> list[Any]:
    """Return the lines of JSON; of a file that several processes write, the last one may not be whole yet."""
    return [json.loads(line) for line in text.split("\n")[:-1]]


def state_of(operated: OperatedTeam, id: str) -> str:
    """Return the state of a background run, as the operator sees it."""
    return operated.ask("runs", id).get("state", "")


@asynccontextmanager
async def asking(operated: OperatedTeam, name: str) -> AsyncGenerator[asyncio.Task[Any]]:
    """Yield a run of *name* that waits for an answer of its user, who never gives one."""
    asked = asyncio.Event()

    async def never(*_: Any) -> Any:
        asked.set()
        await asyncio.get_running_loop().create_future()

    url = operated.server.url
    async with operated.team.client(operated.team.tokens[name], url=url, elicitation_handler=never) as client:
        running = asyncio.ensure_future(client.call_tool("run", {"command": "ot.version()"}, raise_on_error=False))
        async with asyncio.timeout(PATIENCE):
            await asked.wait()
        yield running
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def test_who_is_there_and_who_floods_us(operated: OperatedTeam) -> None:
    before = time.time()
    for n in range(12):
        operated.run("ann", "1 + 1", replica=n % 2)
    operated.run("bob", "'x' * 100")
    operated.run("bob", "file.write(path='a.txt', content='x' * 5000)")

    def seen() -> dict[str, Any]:
        return {row["principal"]: row for row in operated.ask("people")["people"]}

    operated.until(lambda: seen().get(ANN, {}).get("runs", 0) >= 12 and seen().get(BOB, {}).get("runs", 0) >= 2)
    people = seen()
    assert max(people.values(), key=lambda row: row["last_minute"])["principal"] == ANN
    assert people[ANN]["last_minute"] >= 12
    assert people[ANN]["last"] >= people[ANN]["first"] >= before - 1
    assert people[BOB]["bytes"] >= 5000
    assert people[BOB]["chars"] >= 100
    assert ANN in operated.onetool("team", "people").out


def test_what_works_and_what_does_not(operated: OperatedTeam) -> None:
    told = operated.ask("status")
    assert [one["state"] for one in told["replicas"]] == ["ready", "ready"]
    assert len(told["workers"]) == 1
    assert told["ledger"]["status"] in ("ok", "not durable")
    config = operated.server.place.config
    good = config.read_text()
    try:
        config.write_text(f"{good}\n  nonsense: [")
        ended = operated.onetool("team", "status", "--json")
        assert ended.code == 1
        assert "onetool.yaml" in ended.told["config"]
    finally:
        config.write_text(good)


async def test_what_runs_now_and_whose_it_is_and_that_it_stops(operated: OperatedTeam) -> None:
    async with asking(operated, "ann") as running:
        (run,) = [one for one in operated.ask("runs")["under_way"] if not one["background"]]
        assert (run["principal"], run["program"]) == (ANN, "ot.version()")
        assert operated.ask("runs", "--of", "bob")["under_way"] == []
        assert operated.ask("quota", "ann")["used"]["in_flight"][0] == 1
        assert operated.ask("runs", run["id"])["principal"] == ANN
        assert operated.ask("cancel", run["id"])["principal"] == ANN
        operated.until(lambda: run["id"] not in [one["id"] for one in operated.ask("runs")["under_way"]])
        assert not running.done(), "its user has not answered, and hears of it then"
        ended = operated.onetool("team", "cancel", run["id"])
        assert (ended.code, ended.out) == (3, "")


def test_what_is_in_the_background_and_that_it_stops(operated: OperatedTeam) -> None:
    id = background(operated, "bob", LONG)
    operated.until(lambda: state_of(operated, id) == "asks")
    listed = {run["id"]: run for run in operated.ask("runs")["background"]}
    assert listed[id]["principal"] == BOB
    assert [run["id"] for run in operated.ask("runs", "--of", BOB)["background"]] == [id]
    assert BOB in operated.onetool("team", "runs").out
    assert operated.ask("quota", BOB)["used"]["background.most_open"][0] == 1
    operated.ask("cancel", id)
    operated.until(lambda: state_of(operated, id) == "cancelled")


def test_a_run_that_nobody_had_is_not_found(operated: OperatedTeam) -> None:
    for words in (("runs", "nothing"), ("cancel", "nothing"), ("forget", "nobody", "--yes"), ("logout", "nobody")):
        ended = operated.onetool("team", *words)
        assert (ended.code, ended.out) == (3, ""), words
        assert ended.err.startswith("onetool: ")


def test_what_somebodys_agent_changed(operated: OperatedTeam) -> None:
    name = canary()
    operated.run("ann", f"file.write(path='{name}.txt', content='x')")

    def lines() -> list[Any]:
        found = whole_lines(operated.audit.read_text())
        return [line for line in found if line.get("principal") == ANN and line.get("tool") == "file.write"]

    operated.until(lines)
    told = operated.ask("runs", lines()[-1]["run"])
    assert told["principal"] == ANN
    assert [(call["tool"], call["state"]) for call in told["effects"]] == [("file.write", "done")]


def test_the_name_of_a_person_in_a_trace(operated: OperatedTeam) -> None:
    told = operated.ask("hash", ANN)
    assert told["telemetry"] == KeyedHash(operated.team.tokens["ann"]).of_text(ANN)
    assert told["directory"] == directory_name(ANN)
    assert told["shared"] == operated.keys.hide(ANN)


@asynccontextmanager
async def login_of(operated: OperatedTeam, principal: str) -> AsyncGenerator[SharedTokenStore]:
    """Yield where the login of *principal* at the server of the configuration is."""
    place = operated.server.place
    paths = Paths(place.cwd, None, place.home / ".onetool")
    specs = resolve_specs(load_config(paths, Trust(paths.global_dir)), paths)
    account = specs["notes"].account
    assert account
    sessions = PostgresSessions(operated.team.postgres.address, operated.team.root.name, answer_seconds=PATIENCE)
    try:
        records = PostgresLogins(TeamRows(sessions, operated.keys))
        yield SharedTokenStore(account.of(principal), records, asyncio.get_running_loop())
    finally:
        await sessions.aclose()


async def plant_login(operated: OperatedTeam, principal: str, token: str) -> None:
    """Have *principal* be logged in with *token*."""
    async with login_of(operated, principal) as store:
        await asyncio.to_thread(store.write, TokenRecord(token, time.time()))


async def is_logged_in(operated: OperatedTeam, principal: str) -> bool:
    """Return whether *principal* is logged in."""
    async with login_of(operated, principal) as store:
        return await asyncio.to_thread(store.read) is not None


async def always_allow(operated: OperatedTeam, name: str) -> None:
    """Have *name* allow for good what is asked about."""

    async def always(*_: Any) -> ElicitResult[dict[str, str]]:
        return ElicitResult(action="accept", content={"decision": "always"})

    url = operated.server.url
    async with operated.team.client(operated.team.tokens[name], url=url, elicitation_handler=always) as client:
        assert not (await client.call_tool("run", {"command": "ot.version()"}, raise_on_error=False)).is_error


async def test_a_persons_logins_and_permissions_end_and_those_of_others_stay(operated: OperatedTeam) -> None:
    for principal in (ANN, BOB):
        await plant_login(operated, principal, canary())
    await always_allow(operated, "bob")
    told = await asyncio.to_thread(operated.ask, "logout", "bob", "notes")
    assert list(told["ended"]) == ["notes"]
    assert told["asked_again"] == []
    told = await asyncio.to_thread(operated.ask, "logout", "bob")
    assert told["asked_again"] == ["ot.version"]
    assert not await is_logged_in(operated, BOB)
    assert await is_logged_in(operated, ANN)
    ended = operated.onetool("team", "logout", "ann", "nowhere")
    assert (ended.code, "notes" in ended.err) == (3, True)


async def test_of_a_person_who_is_forgotten_no_byte_is_left_in_any_store(operated: OperatedTeam) -> None:
    mark = canary()
    others = canary()
    goes_on = background(operated, "ann", f"'{mark}'\n{LONG}")
    operated.until(lambda: state_of(operated, goes_on) == "asks")
    await plant_login(operated, ANN, mark)
    await always_allow(operated, "ann")
    own = operated.server.place.home / ".onetool" / PEOPLE / directory_name(ANN) / "secrets.yaml"
    own.write_text(f"KEY: {mark}\n")
    for name, text in (("ann", mark), ("bob", others)):
        operated.run(name, f"file.write(path='note.txt', content='{text}')")
        operated.run(name, f"memory.write(text='{text}', scope='user')")
        assert "handle" in operated.run(name, f"['{text}'] * 1000")
    done = background(operated, "ann", f"file.write(path='b.txt', content='{mark}')\n'{mark}'")
    operated.until(lambda: state_of(operated, done) == "done")
    others_run = background(operated, "bob", f"'{others}'")
    operated.until(lambda: state_of(operated, others_run) == "done")
    names = operated.names_of(ANN)
    operated.until(lambda: any("stats.db" in place for place in operated.search(names)))

    planned = operated.ask("forget", "ann", "--dry-run")["kept"]
    kinds = "audit calls files log logins notes permissions redis results roster runs statistics"
    assert {kept["store"] for kept in planned} >= set(kinds.split())
    before = operated.search([*names, mark.encode()])
    tables = [f"table {name}" for name in ("runs", "effects", "permissions", "logins", "notes", "note_ids")]
    for kind in ("redis", *tables, "bucket", "note.txt", "stats.db", "secrets.yaml", "onetool.log"):
        assert any(kind in place for place in before), (kind, before)
    data = str(operated.team.postgres.data)
    assert not any(data in place for place in before), "what PostgreSQL keeps in files is hashed or sealed"

    refused = operated.onetool("team", "forget", "ann")
    assert (refused.code, "--yes" in refused.err) == (4, True)
    ended = operated.onetool("team", "forget", "ann", "--yes", "--json")
    assert ended.code == 0, ended.err
    assert {kept["store"] for kept in ended.told["kept"]} == {"audit"}
    assert operated.search([*names, mark.encode()]) == []
    assert ANN not in {row["principal"] for row in operated.ask("people")["people"]}

    assert operated.run("bob", "open('note.txt').read()") == others
    assert others in operated.run("bob", "memory.list(scope='user')")
    assert others in operated.run("bob", f"ot.run_state(id={others_run!r})")
    assert operated.names_of(BOB)[0].decode() in {row["principal"] for row in operated.ask("people")["people"]}

    assert ANN in operated.audit.read_text()
    assert operated.onetool("team", "forget", ANN, "--audit", "--yes").code == 0
    assert ANN not in operated.audit.read_text()


def test_every_line_of_the_log_is_json_and_those_of_a_request_say_who_asked(operated: OperatedTeam) -> None:
    operated.run("ann", "1 / 0")
    with socket.create_connection(("127.0.0.1", operated.server.port), PATIENCE) as stranger:
        stranger.sendall(b"no request at all\r\n\r\n")
        while stranger.recv(4096):
            pass
    operated.server.wait_for_stderr("Invalid HTTP request received")
    lines = whole_lines(operated.server.stderr_text())
    assert "uvicorn.error" in {line["logger"] for line in lines}
    log = operated.server.place.home / ".onetool" / "logs" / "onetool.log"
    lines += whole_lines(log.read_text())
    runs = [line for line in lines if line.get("request") and line.get("run")]
    assert runs
    assert {line.get("principal") for line in runs} <= {ANN, BOB}


def test_what_an_operator_changes_is_in_the_audit_log(operated: OperatedTeam) -> None:
    id = background(operated, "bob", LONG)
    operated.ask("cancel", id)
    lines = whole_lines(operated.audit.read_text())
    mine = [(line["command"], line["outcome"]) for line in lines if line.get("run") == id and "operator" in line]
    assert mine == [("team cancel", "sent"), ("team cancel", "done")]


def test_without_redis_the_operator_is_told_so(operated: OperatedTeam) -> None:
    operated.team.redis.freeze()
    try:
        ended = operated.onetool("team", "people")
    finally:
        operated.team.redis.thaw()
    assert (ended.code, ended.out) == (5, "")
    assert "no answer within" in ended.err
