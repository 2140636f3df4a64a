"""Whose server a call reaches: of this user, of this name, from this directory, and over the wire."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_wire import WireServer, strict_json
from ot.config.models import Server
from ot.config.paths import Paths
from ot.config.secrets import Secrets
from ot.errors import ServerUnavailable
from ot.proxied.catalogue import ServerCatalogue
from ot.proxied.catalogue_files import CatalogueFiles
from ot.proxied.definition_pins import DefinitionPins
from ot.proxied.definitions import ServerDefinitions
from ot.proxied.learned_shapes import LearnedShapes
from ot.proxied.pool import ServerPool
from ot.proxied.spec import ServerSpec, resolve_spec
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.workspace import Workspace
from pace import TURNS
from proxied.desk import Door, fake, fake_spec, short_backoff
from run_app import value_of
from workers.process_watch import assert_gone

pytestmark = pytest.mark.anyio

READ: dict[str, Any] = {"name": "read", "description": "Read.", "inputSchema": {"type": "object"}}
OTHER = READ | {"description": "Read, and tell others."}
ANN, BOB = "https://idp|ann", "https://idp|bob"


def spec_of(principal: str = "", own: tuple[str, ...] = (), **settings: Any) -> ServerSpec:
    """Return one server as *principal* uses it, whose *own* secrets differ from the operator's."""
    server = Server.model_validate({"command": "run", "env": {"TOKEN": "${TOKEN}"}, **settings})
    secrets = Secrets({"TOKEN": "-".join(["token", *own])})
    paths = Paths(Path("/people") / (principal or "operator"), None, Path("/u"))
    return resolve_spec("desk", server, secrets, paths, principal=principal, own_secrets=own)


def test_each_principal_has_a_process_a_directory_and_an_identity_of_their_own() -> None:
    specs = [spec_of(), spec_of(ANN), spec_of(BOB)]
    assert len({spec.key for spec in specs}) == len({spec.cwd for spec in specs}) == 3
    assert len({spec.identity.written for spec in specs}) == 3


def test_only_a_server_without_login_and_own_secrets_is_known_by_what_the_operators_offers(tmp_path: Path) -> None:
    files = CatalogueFiles(tmp_path)
    files.write(spec_of().identity, ServerDefinitions((READ,)))
    alike, other = spec_of(ANN), spec_of(ANN, own=("TOKEN",))
    assert files.holds(alike.identity) and files.read(alike.identity) == files.read(spec_of().identity)
    assert not files.holds(other.identity) and files.read(other.identity) is None
    login = spec_of(ANN, command="", env={}, url="https://desk.example/mcp", auth="oauth")
    assert login.account and login.account.principal == ANN and not login.identity.common


def test_a_first_use_approves_for_whoever_makes_it_alone(tmp_path: Path) -> None:
    DefinitionPins(tmp_path).observe(spec_of(ANN).identity, "desk", ServerDefinitions((READ,)))
    operators = DefinitionPins(tmp_path)
    assert operators.observe(spec_of().identity, "desk", ServerDefinitions((OTHER,))) == []
    assert DefinitionPins(tmp_path).observe(spec_of(BOB).identity, "desk", ServerDefinitions((OTHER,))) == []


def test_what_the_operator_approved_counts_for_everyone_and_only_the_operator_approves_a_change(
    tmp_path: Path,
) -> None:
    DefinitionPins(tmp_path).observe(spec_of().identity, "desk", ServerDefinitions((READ,)))
    for principal in (ANN, BOB):
        changes = DefinitionPins(tmp_path).observe(spec_of(principal).identity, "desk", ServerDefinitions((OTHER,)))
        assert [change.tool for change in changes] == ["read"]
    pins = DefinitionPins(tmp_path)
    (book,) = [book for book in pins.books() if book.pending_changes()]
    pins.approve(book)
    assert DefinitionPins(tmp_path).observe(spec_of(ANN).identity, "desk", ServerDefinitions((OTHER,))) == []


async def test_a_reload_keeps_the_connections_of_other_principals() -> None:
    mine = spec_of(command="", env={}, url="https://desk.example/mcp", auth="oauth")
    anns = mine.of(ANN)
    pool, holder = ServerPool(backoff=short_backoff), object()
    try:
        pool.hold(holder, [mine.key])
        kept = pool.connection(anns)
        pool.hold(holder, [mine.key])
        assert pool.connection(anns) is kept and not kept.closing
        pool.hold(holder, [replace(mine, call_seconds=1.0).key])
        assert kept.closing
    finally:
        await pool.aclose()


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A user's directory whose server refuses every call once it counts as changed."""
    user = tmp_path / "user"
    user.mkdir()
    config = {"servers": {"fake": fake()}, "policy": {"changed_definitions": "block", "allow": ["fake.*"]}}
    (user / "onetool.yaml").write_text(json.dumps(config))
    return user


async def in_directory(cwd: Path, user: Path, *commands: str) -> list[str]:
    """Return what a server that works in *cwd* replies to *commands*, and end it."""
    cwd.mkdir()  # noqa: ASYNC240 - nothing else is under way
    app = Workspace.alone(Paths.of(cwd, user), engine=PortableEngine())
    try:
        return [value_of(await app.run(command)) for command in commands]
    finally:
        await app.aclose()


async def test_twenty_directories_raise_no_alarm_and_share_one_catalogue(tmp_path: Path, user: Path) -> None:
    for number in range(20):
        echoed, health = await in_directory(
            tmp_path / f"work{number}", user, "fake.echo(text='here')", "ot.health()['proxy']"
        )
        assert echoed == "here"
        assert "changed" not in health, health
    kinds = [file.name.split(".", 1)[1] for file in (user / "servers").glob("*.json")]
    assert sorted(kinds) == ["pins.json", "shapes.json", "tools.json"]


async def test_search_knows_a_server_in_a_directory_never_seen_before(tmp_path: Path, user: Path) -> None:
    await in_directory(tmp_path / "first", user, "fake.echo(text='x')")
    found, packs, health = await in_directory(
        tmp_path / "second", user, "ot.tools(pattern='echo')", "ot.packs()", "ot.health()['proxy']"
    )
    assert "fake.echo" in found
    assert "not been asked" not in packs
    assert "disconnected" in health


def named(directory: Path, tool: str) -> ServerSpec:
    """Return a server that offers *tool*, under the name that all of them have."""
    names = directory / tool
    names.write_text(tool)
    return fake_spec(f"list={names}")


async def test_each_has_its_own_definitions_state_and_process(tmp_path: Path):
    one, two = named(tmp_path, "apple"), named(tmp_path, "pear")
    pool = ServerPool(backoff=short_backoff)
    try:
        first, second = Door(one, pool), Door(two, pool)
        assert await first.call("pid") != await second.call("pid")
        assert pool.connection(one).definition("apple")
        assert pool.connection(two).definition("pear")
        assert not pool.connection(one).definition("pear")
        assert not pool.connection(two).definition("apple")
        assert set(pool.states()) == {one.key, two.key}
        with pytest.raises(ServerUnavailable):
            await second.call("die")
        assert first.state["state"] == "connected"
        assert second.state["state"] != "connected"
    finally:
        await pool.aclose()


async def test_letting_go_of_one_leaves_the_other(tmp_path: Path):
    one, two = named(tmp_path, "apple"), named(tmp_path, "pear")
    pool = ServerPool(backoff=short_backoff)
    here, there = object(), object()
    try:
        pool.hold(here, [one.key])
        pool.hold(there, [two.key])
        await pool.list_all([one, two])
        pool.hold(there, [])
        assert set(pool.states()) == {one.key}
        assert pool.connection(one).definition("apple")
    finally:
        await pool.aclose()


async def test_each_catalogue_shows_its_own_tools(tmp_path: Path):
    one, two = named(tmp_path, "apple"), named(tmp_path, "pear")

    def heard(spec: ServerSpec, definitions: ServerDefinitions) -> None:
        for catalogue in catalogues:
            catalogue.learned(spec, definitions)

    pool = ServerPool(heard, backoff=short_backoff)
    directory = tmp_path / "servers"
    kept = CatalogueFiles(directory), DefinitionPins(directory), LearnedShapes(directory)
    catalogues = [ServerCatalogue(pool, *kept), ServerCatalogue(pool, *kept)]
    try:
        for catalogue, spec in zip(catalogues, (one, two), strict=True):
            catalogue.packs({spec.name: spec})
        for catalogue in catalogues:
            await catalogue.ask_named(["fake"])
            assert catalogue.stale
        (apples,), (pears,) = (
            catalogue.packs({spec.name: spec}) for catalogue, spec in zip(catalogues, (one, two), strict=True)
        )
        assert ("apple" in apples.tools, "pear" in apples.tools) == (True, False)
        assert ("apple" in pears.tools, "pear" in pears.tools) == (False, True)
    finally:
        await pool.aclose()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireServer]:
    """OneTool that logs all it can, and a noisy server behind it."""
    home = tmp_path_factory.mktemp("noisy")
    (home / ".onetool").mkdir()
    settings = {"servers": {"fake": fake("print=1", "junk=3")}, "logs": {"level": "DEBUG"}}
    (home / ".onetool" / "onetool.yaml").write_text(json.dumps(settings))
    command = [str(Path(sys.executable).with_name("onetool")), "serve"]
    with WireServer.start(command, cwd=home, env={**os.environ, "HOME": str(home)}) as started:
        assert started.run("fake.junk()").text == "after the junk"
        assert started.run("fake.flood(size=10000)").text == "flooded"
        yield started


@pytest.mark.scenario("004-18")
@pytest.mark.scenario("004-22")
def test_what_servers_and_onetool_say_about_themselves_is_on_standard_error(server: WireServer) -> None:
    for words in ("Welcome to the fake server, line 0!", "ot.proxied.fake: eeee"):
        server.wait_for_stderr(words)  # a thread of the server writes it, a little later
    assert not any(b"Welcome" in line or b"eeee" in line for line in server.lines)


@pytest.mark.scenario("004-23")
def test_replies_are_lines_of_json_rpc_on_standard_output(server: WireServer) -> None:
    reply = server.run("fake.echo(text='one line')")
    assert reply.raw_line in server.lines
    message = strict_json(reply.raw_line)
    assert isinstance(message, dict)
    assert (message["jsonrpc"], message["id"]) == ("2.0", reply.id)
    assert reply.text == "one line"


@pytest.mark.scenario("004-24")
def test_no_line_of_standard_output_is_anything_else(server: WireServer) -> None:
    assert len(server.lines) > 2
    assert server.stdout_junk == []


def test_ping_is_answered_at_once_while_a_server_hangs(server: WireServer) -> None:
    number = server.send_run("fake.silent()")
    # What a busy machine adds is not there each time.
    assert min(max(server.ping() for _ in range(20)) for _ in range(TURNS)) < 0.25
    server.cancel(number)
    assert server.run("fake.echo(text='on')").text == "on"


def test_no_process_of_a_server_outlives_onetool(tmp_path: Path) -> None:
    (tmp_path / ".onetool").mkdir()
    (tmp_path / ".onetool" / "onetool.yaml").write_text(json.dumps({"servers": {"fake": fake()}}))
    command = [str(Path(sys.executable).with_name("onetool")), "serve"]
    with WireServer.start(command, cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)}) as started:
        pids = [json.loads(started.run("fake.pid()").text)["pid"], int(started.run("fake.fork()").text)]
        started.kill()
    assert_gone(pids)
