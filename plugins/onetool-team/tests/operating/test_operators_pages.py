"""The pages for operators do what they say: one machine without Redis, its copy, and what is restored from that."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from redis import Redis

from docs_blocks import DOCS, Block, blocks_of
from free_ports import free_port
from http_server import START, HttpServer, text_of
from onetool_team.auth.static_tokens import token_hash
from onetool_team.workspaces import directory_name
from pace import PATIENCE, patiently
from postgres_server import postgres_server
from state.redis_process import RedisProcess, running_redis
from system_package import require_programs
from team.whole_team import canary

pytestmark = pytest.mark.timeout(180)

ANN = "token|ann"


def shown(page: str, language: str) -> list[Block]:
    """Return the blocks of a page that are to be played."""
    return [block for block in blocks_of(DOCS / "how-to" / page) if block.language == language and not block.why_not]


def play(text: str, environ: Mapping[str, str], cwd: Path) -> str:
    """Return what the commands of a block print, typed into a shell that stops at the first that fails."""
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        env=dict(environ),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, f"{text}\n{ended.stderr}"
    return ended.stdout


def until(holds: Callable[[], object]) -> None:
    """Return once *holds* does."""
    for _ in patiently():
        if holds():
            return
    raise AssertionError(holds)


@dataclass
class Machine:
    """The one machine: its server, and a shell of the user that it runs as."""

    server: HttpServer
    token: str
    environ: dict[str, str]

    @property
    def home(self) -> Path:
        """The home directory."""
        return self.server.place.home

    def run(self, command: str) -> str:
        """Return what a program of ann says."""
        return text_of(self.server.run(command, token=self.token))

    def shell(self, text: str, home: Path | None = None) -> str:
        """Return what *text* prints."""
        return play(text, self.environ | ({"HOME": str(home)} if home else {}), self.server.place.cwd)

    def ask(self, *words: str, home: Path | None = None) -> Any:
        """Return what a command of the operator's says as JSON."""
        return json.loads(self.shell(f"onetool team {' '.join(map(repr, words))} --json", home))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Generator[Machine]:
    """The machine as the page has it set up: its settings, and a token made by its command."""
    root = tmp_path_factory.mktemp("machine")
    (settings,) = shown("one-machine.md", "yaml")
    text = settings.text.replace("/srv/onetool", str(root)).replace("/var/log/onetool", str(root))
    text = text.replace("9464", str(free_port()))
    config = root / "home" / ".onetool" / "onetool.yaml"
    config.parent.mkdir(parents=True, mode=0o700)
    config.write_text(
        text + "engines: {use: portable}\nservers: {notes: {url: 'http://127.0.0.1:9/mcp', auth: oauth}}\n"
    )
    programs = root / "bin"
    programs.mkdir()
    (programs / "onetool").write_text(f'#!/bin/sh\nexec {sys.executable} -c "{START}" "$@"\n')
    (programs / "onetool").chmod(0o755)
    (root / "work").mkdir()
    environ = {"HOME": str(root / "home"), "PATH": f"{programs}:{os.environ['PATH']}", "STATE_KEY": "k" * 32}
    first, *_ = shown("one-machine.md", "sh")
    token = play(first.text, environ, root / "work").split()[0]
    assert yaml.safe_load(config.read_text())["http"]["tokens"]["ann"]
    with HttpServer.start(root, config.read_text(), env={"STATE_KEY": environ["STATE_KEY"]}) as server:
        yield Machine(server, token, environ)


def test_one_machine_serves_people_and_answers_its_operator_without_redis(machine: Machine) -> None:
    assert machine.run("1 + 1") == "2"
    _, commands = shown("one-machine.md", "sh")
    said = machine.shell(commands.text)
    assert "replicas: 1" in said
    assert "background" in machine.run("ot.background(command='1')").lower()

    def seen() -> Any:
        return {row["principal"]: row for row in machine.ask("people")["people"]}.get(ANN, {})

    until(lambda: seen().get("runs", 0) >= 2)
    assert seen()["last_minute"] >= 2
    assert machine.ask("quota", "ann")["used"]["runs_per_minute"][1] == 600


def test_the_operator_sees_the_quotas_of_a_persons_groups(machine: Machine) -> None:
    config = machine.home / ".onetool" / "onetool.yaml"
    good = config.read_text()
    settings = yaml.safe_load(good)
    settings["http"] |= {"tokens_file": "people.txt", "quotas": {"groups": {"robots": {"in_flight": 32}}}}
    (config.parent / "people.txt").write_text(f"build sha256:{'1' * 64} groups=robots\n")
    try:
        config.write_text(yaml.safe_dump(settings))
        most = {name: machine.ask("quota", name)["used"]["in_flight"][1] for name in ("build", "ann")}
    finally:
        config.write_text(good)
    assert most == {"build": 32, "ann": 8}


def test_the_operator_sees_which_settings_are_used_since_when_and_why_newer_ones_are_not(machine: Machine) -> None:
    config = machine.home / ".onetool" / "onetool.yaml"
    good = config.read_text()

    def limited(seconds: object) -> str:
        settings = yaml.safe_load(good)
        return yaml.safe_dump(settings | {"limits": settings.get("limits", {}) | {"run_seconds": seconds}})

    def used() -> dict[str, Any]:
        (replica,) = machine.ask("status")["replicas"]
        return replica["settings"]

    first = used()
    assert (len(first["hash"]), first["why_not_newer"]) == (12, "")
    try:
        config.write_text(f"{good}\n# the same settings\n")
        assert used() == first
        config.write_text(limited(77))
        second = used()
        assert second["hash"] != first["hash"] and second["since"] > first["since"]
        config.write_text(limited("never"))
        said = machine.shell("onetool team status || echo ended $?")
    finally:
        config.write_text(good)
    (refused,) = [line for line in said.splitlines() if "newer settings are not used" in line]
    assert "onetool.yaml" in refused and "run_seconds" in refused
    assert second["hash"] in said and said.splitlines()[-1] == "ended 1"
    assert used()["hash"] == first["hash"]


@pytest.mark.parametrize("page", ["operate-a-team.md", "size-a-team.md", "upgrade-a-team.md", "back-up-a-team.md"])
def test_commands_of_the_other_pages_can_be_typed_there(machine: Machine, page: str) -> None:
    machine.run("1")
    for block in shown(page, "sh"):
        for line in block.text.splitlines():
            if line.startswith("onetool team") and "--yes" not in line:
                machine.shell(line)


def test_what_is_copied_is_there_when_it_is_restored(machine: Machine, tmp_path: Path) -> None:
    mark = canary()
    machine.run(f"memory.write(text='{mark}', scope='user')")
    machine.run(f"file.write(path='{mark}.txt', content='x')")
    audit = Path(yaml.safe_load(machine.server.place.config.read_text())["telemetry"]["audit"])

    def written() -> list[Any]:
        lines = [json.loads(line) for line in audit.read_text().splitlines()]
        return [line for line in lines if line.get("tool") == "file.write"]

    until(written)
    run = written()[-1]["run"]
    assert machine.ask("runs", run)["effects"]

    files, databases, of_redis, of_postgres, restored, *_ = shown("back-up-a-team.md", "sh")
    machine.shell(files.text)
    machine.shell(databases.text)
    assert ("redis-cli" in of_redis.text, "pg_dump" in of_postgres.text) == (True, True)
    other = tmp_path / "home"
    other.mkdir()
    shutil.copytree(machine.home / "onetool-databases", other / "onetool-databases")
    play(restored.text, machine.environ | {"HOME": str(other)}, machine.server.place.cwd)

    assert [call["tool"] for call in machine.ask("runs", run, home=other)["effects"]] == ["file.write"]
    notes = list((other / ".onetool" / "data").rglob("*.db"))
    assert any(mark.encode() in file.read_bytes() for file in notes)
    assert (other / ".onetool" / "onetool.yaml").read_text() == machine.server.place.config.read_text()
    assert (other / ".onetool").stat().st_mode & 0o077 == 0


def test_a_copy_of_redis_is_read_by_an_empty_one_that_then_keeps_its_own_file(tmp_path: Path) -> None:
    require_programs("redis-cli")
    _, _, copy, _, _, turn_on, *_ = shown("back-up-a-team.md", "sh")
    with running_redis("--appendonly", "yes", "--appendfsync", "always", tcp=True) as redis:
        with Redis.from_url(redis.url) as client:
            client.set("onetool:login:1", "sealed")
        play(copy.text, os.environ | {"REDIS_URL": redis.url}, tmp_path)
    fresh = RedisProcess(("--dbfilename", "onetool.rdb"), tcp=True, directory=tmp_path).start()
    try:
        play(turn_on.text, os.environ | {"REDIS_URL": fresh.url}, tmp_path)
        with Redis.from_url(fresh.url) as client:
            assert client.get("onetool:login:1") == b"sealed"
            until(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
        fresh.kill()
        assert any((tmp_path / "appendonlydir").iterdir())
        again = RedisProcess(("--appendonly", "yes"), tcp=True, directory=tmp_path).start()
        try:
            with Redis.from_url(again.url) as client:
                assert client.get("onetool:login:1") == b"sealed"
        finally:
            again.kill()
    finally:
        fresh.kill()


@contextmanager
def database_of_replicas() -> Generator[str]:
    """Yield the address of a database as the page on replicas has it made."""
    (made,) = shown("replicas.md", "sql")
    with postgres_server() as server:
        for statement in made.text.splitlines():
            server.run(statement)
        yield f"postgresql://onetool:PASSWORD@/onetool?host={server.socket}"


def test_a_copy_of_postgresql_has_the_runs_that_wait_and_goes_into_an_empty_one(
    machine: Machine, tmp_path: Path
) -> None:
    require_programs("pg_dump")
    _, _, _, copy, _, _, read, _ = shown("back-up-a-team.md", "sh")
    state = "state: {postgres: '${POSTGRES_URL}', redis: '${REDIS_URL}', keys: ['${STATE_KEY}']}\n"
    token = f"http: {{tokens: {{ann: {{hash: '{token_hash(machine.token)}'}}}}}}\n"
    with running_redis(tcp=True) as redis, database_of_replicas() as first, database_of_replicas() as other:
        given = {"POSTGRES_URL": first, "REDIS_URL": redis.url, "STATE_KEY": machine.environ["STATE_KEY"]}
        with HttpServer.start(tmp_path, f"{state}{token}engines: {{use: portable}}\n", env=given) as server:
            replica = Machine(server, machine.token, machine.environ | given | {"HOME": str(tmp_path / "home")})
            id = replica.run("ot.background(command='6 * 7')['id']").strip('"')
            replica.shell(copy.text)
            replica.environ["POSTGRES_URL"] = other
            replica.shell(read.text)
            assert [run["id"] for run in replica.ask("runs")["background"]] == [id]


def test_a_person_is_forgotten_on_one_machine_too(machine: Machine) -> None:
    mark = canary()
    machine.run(f"file.write(path='note.txt', content='{mark}')")
    machine.run(f"memory.write(text='{mark}', scope='user')")
    assert "handle" in machine.run(f"[f'{{n}} {mark}' for n in range(5000)]")
    place = machine.server.place
    names = [text.encode() for text in (ANN, mark, directory_name(ANN))]

    def left() -> list[Path]:
        files = [file for root in (machine.home / ".onetool", place.home.parent / "people") for file in root.rglob("*")]
        found: list[Path] = []
        for file in filter(Path.is_file, files):
            # The server puts a new file in the place of an old one at any moment.
            with suppress(FileNotFoundError):
                text = bytes(file) + file.read_bytes()
                found += [file] if any(name in text for name in names) else []
        return found

    written = {"stats.db", "seen.json", "onetool.log"}
    until(lambda: written <= {file.name.removesuffix("-wal") for file in left()})
    machine.shell("onetool team forget ann --yes")
    assert left() == []
    assert ANN not in {row["principal"] for row in machine.ask("people")["people"]}
    assert machine.run("1 + 1") == "2", "whoever still has a token begins anew"
