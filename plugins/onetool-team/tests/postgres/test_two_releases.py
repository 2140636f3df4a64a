"""This release and the one before are at work on one database, in both orders: nothing is lost, doubled or refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from onetool_team.ledger.postgres_schema import STEPS
from pace import PATIENCE
from postgres_server import PostgresServer

ROOT = Path(__file__).parents[4]
SOURCES = ("src", "packs", "plugins/onetool-team/src")
EVERY_STEP, FIRST_STEP = "= (TABLES, OF_PEOPLE)", "= (TABLES,)"
PROGRAM = Path(__file__).with_name("release_at_work.py")


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the release before: until one is tagged these, with the tables of the ledger alone."""
    place = tmp_path_factory.mktemp("older")
    for one in SOURCES:
        shutil.copytree(ROOT / one, place / one, ignore=shutil.ignore_patterns("__pycache__"))
    schema = place / SOURCES[-1] / "onetool_team" / "ledger" / "postgres_schema.py"
    text = schema.read_text(encoding="utf-8")
    assert EVERY_STEP in text
    schema.write_text(text.replace(EVERY_STEP, FIRST_STEP), encoding="utf-8")
    return place


class Release:
    """One release at work, in a process of its own."""

    def __init__(self, sources: Path, url: str, schema: str, name: str, count: int) -> None:
        path = os.pathsep.join(str(sources / one) for one in SOURCES)
        argv = [sys.executable, str(PROGRAM), url, schema, name, str(count), str(2 * count)]
        self._process = subprocess.Popen(
            argv, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True
        )

    def wait_until_at_work(self) -> None:
        """Return once it has connected, and found or made its tables."""
        assert self._process.stdout
        assert self._process.stdout.readline() == "at work\n"

    def result(self) -> Any:
        """Return what it did, once it has ended without an error."""
        out, _ = self._process.communicate(timeout=20 * PATIENCE)
        assert self._process.returncode == 0
        return json.loads(out)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def at_work(*given: Any) -> Generator[Release]:
    """Yield one."""
    release = Release(*given)
    try:
        yield release
    finally:
        release.close()


@pytest.fixture
def schema(postgres: PostgresServer) -> Iterator[str]:
    name = f"team_{token_hex(4)}"
    yield name
    postgres.run(f'DROP SCHEMA "{name}" CASCADE')


def play(postgres: PostgresServer, schema: str, order: list[Path], count: int) -> None:
    """Have two releases be at work, the second from when the first is, and look at what they have done."""
    where = postgres.address, schema
    with at_work(order[0], *where, "first", count) as first:
        first.wait_until_at_work()
        with at_work(order[1], *where, "second", count) as second:
            second.wait_until_at_work()
            done = [second.result(), first.result()]
    total = 2 * count
    carried = [id for one in done for id in one["carried"]]
    assert len(carried) == len(set(carried)) == total
    assert all(one["carried"] for one in done), "each carries out what the other has left, too"
    assert sum(one["calls"] for one in done) == 4 * total
    assert postgres.run(f'SELECT state, count(*) FROM "{schema}".runs GROUP BY 1') == f"done|{total}"
    assert postgres.run(f'SELECT state, count(*) FROM "{schema}".effects GROUP BY 1') == f"done|{4 * total}"
    assert postgres.run(f'SELECT version FROM "{schema}".ledger_version') == str(len(STEPS))
    assert postgres.run(f'SELECT count(*) FROM "{schema}".notes') == "0"


@pytest.mark.parametrize("count", [25, pytest.param(400, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
@pytest.mark.parametrize("older_is_first", [True, False])
def test_both_releases_do_all_that_is_to_be_done_once(
    postgres: PostgresServer, schema: str, older: Path, older_is_first: bool, count: int
) -> None:
    play(postgres, schema, [older, ROOT] if older_is_first else [ROOT, older], count)


def test_the_older_sources_are_older(older: Path) -> None:
    code = "import onetool_team.ledger.postgres_schema as s; print(s.__file__, len(s.STEPS))"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(str(older / one) for one in SOURCES)}
    file, steps = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    ).stdout.split()
    assert Path(file).is_relative_to(older)
    assert int(steps) < len(STEPS)


def test_no_step_keeps_anybody_from_writing_or_takes_anything_away() -> None:
    """A new table has no rows and no writers; a column that is there when it may be left out is there at once."""
    for step in STEPS:
        statements = [" ".join(statement.split()) for statement in step.split(";") if statement.strip()]
        made = {statement.split()[2] for statement in statements if statement.startswith("CREATE TABLE ")}
        for statement in statements:
            words = statement.split()
            is_index_of_new = words[:2] == ["CREATE", "INDEX"] and words[4] in made
            is_new_column = words[:2] == ["ALTER", "TABLE"] and words[3:5] == ["ADD", "COLUMN"]
            has_to_be_given = "NOT NULL" in statement and "DEFAULT" not in statement
            assert (
                (words[1] == "TABLE" and words[2] in made) or is_index_of_new or (is_new_column and not has_to_be_given)
            )
