"""Files opened without links, read whole or not at all, and a database that several processes write."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ot.files import shared_database
from ot.files.no_links import READ, open_directory, open_file
from ot.files.private_file import read_regular, write_private
from ot.files.shared_database import open_shared_database
from ot.introspect.notify import append
from ot.output.result_files import ResultDirectory
from pace import PATIENCE

APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project's directory, with links to a directory outside at every depth."""
    outside, project = tmp_path / "outside", tmp_path / "work" / ".onetool"
    outside.mkdir()
    (project / "tmp" / "deep").mkdir(parents=True)
    (tmp_path / "work" / "linked").symlink_to(project)
    for place in (project / "logs", project / "tmp" / "d", project / "tmp" / "deep" / "d"):
        place.symlink_to(outside)
    return project


WAYS = ["logs/x", "logs/sub/x", "tmp/d/x", "tmp/d/sub/x", "tmp/deep/d/x"]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_written_or_made_behind_a_link(project: Path, way: str) -> None:
    uses = [
        lambda: open_file(project / way, APPEND, below=project, make=True),
        lambda: open_directory(project / way, below=project, make=True),
        lambda: write_private(project / way, "x", below=project),
        lambda: append(project / way, b"x", project),
        lambda: ResultDirectory.create(project / way, project),
    ]
    for use in uses:
        with pytest.raises(OSError):
            use()
    assert list((project.parent.parent / "outside").iterdir()) == []
    assert (project.parent.parent / "outside").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_read_behind_a_link(project: Path, way: str) -> None:
    (project.parent.parent / "outside" / "sub").mkdir()
    for name in ("x", "sub/x"):
        (project.parent.parent / "outside" / name).write_text("private")
    with pytest.raises(OSError):
        read_regular(project / way, 100, follow=True, below=project)


def test_a_project_directory_that_became_a_link_is_not_followed(project: Path) -> None:
    linked = project.parent / "linked"
    with pytest.raises(OSError):
        open_directory(linked / "tmp", below=linked, make=True)


@pytest.mark.parametrize("name", ["x", "tmp/x"])
def test_a_link_in_the_files_own_place_is_not_followed(project: Path, name: str) -> None:
    (project / name).symlink_to(project.parent.parent / "outside" / "made")
    with pytest.raises(OSError):
        open_file(project / name, APPEND, below=project)
    write_private(project / name, "mine", below=project)
    assert ((project / name).is_symlink(), (project / name).read_text()) == (False, "mine")
    assert not (project.parent.parent / "outside" / "made").exists()


def test_a_file_with_a_second_name_is_not_written(project: Path) -> None:
    other = project.parent.parent / "outside" / "profile"
    other.write_text("mine\n")
    os.link(other, project / "tmp" / "x")
    with pytest.raises(OSError) as refused:
        open_file(project / "tmp" / "x", APPEND, below=project)
    assert refused.value.errno == errno.EMLINK
    assert other.read_text() == "mine\n"


def test_a_pipe_in_a_files_place_holds_nothing_up(project: Path) -> None:
    os.mkfifo(project / "tmp" / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        open_file(project / "tmp" / "pipe", READ, below=project)


def test_a_path_that_leads_out_and_in_again_is_refused(project: Path) -> None:
    with pytest.raises(OSError, match=r"'\.\.'"):
        open_directory(project / ".." / ".." / "outside", below=project)


def test_what_is_really_there_is_made_private_and_used(project: Path) -> None:
    fd = open_file(project / "stats" / "a" / "b", APPEND, below=project, make=True)
    os.write(fd, b"here")
    os.close(fd)
    assert (project / "stats" / "a" / "b").read_bytes() == b"here"
    assert (project / "stats" / "a").stat().st_mode & 0o777 == 0o700


def while_read(monkeypatch: pytest.MonkeyPatch, file: Path, writes: int) -> None:
    """Let *file* grow between the two looks at it, in the first *writes* readings."""
    real, left = os.fstat, iter(range(writes))

    def fstat(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        if next(left, None) is not None:
            with file.open("a") as growing:
                growing.write("more\n")
        return found

    monkeypatch.setattr(os, "fstat", fstat)


def test_a_file_written_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f"
    file.write_text("one\n")
    while_read(monkeypatch, file, writes=1)
    assert read_regular(file, 100, follow=True).data == b"one\nmore\n"


def test_a_file_that_is_written_all_the_while_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f"
    file.write_text("one\n")
    while_read(monkeypatch, file, writes=100)
    with pytest.raises(OSError, match="being written"):
        read_regular(file, 10_000, follow=True)


def test_no_more_than_the_limit_and_one_byte_is_read(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x" * 1000)
    assert len(read_regular(file, 10, follow=True).data) == 11


def test_a_link_is_followed_only_where_asked(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one\n")
    (tmp_path / "link").symlink_to("f")
    assert read_regular(tmp_path / "link", 10, follow=True).data == b"one\n"
    with pytest.raises(OSError, match="symbolic"):
        read_regular(tmp_path / "link", 10, follow=False)


def make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS t (x)")


@pytest.fixture
def held(tmp_path: Path) -> sqlite3.Connection:
    """Another process's connection, which is making the file."""
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


def test_who_opens_a_file_that_another_one_is_making_waits_for_it(
    tmp_path: Path, held: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        held.execute("COMMIT")

    monkeypatch.setattr(shared_database.time, "sleep", pause)
    with closing(held), closing(open_shared_database(tmp_path / "a.db", make_tables)) as opened:
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert len(pauses) == 1


def test_who_has_waited_long_enough_is_told(
    tmp_path: Path, held: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_database, "BUSY_SECONDS", 0.05)
    with closing(held), pytest.raises(sqlite3.OperationalError, match="locked"):
        open_shared_database(tmp_path / "a.db", make_tables)


WRITER = """
import sqlite3, sys
from pathlib import Path
from ot.files import shared_database
shared_database.NETWORK = ("",)
connection = shared_database.open_shared_database(Path(sys.argv[1]), lambda _: None)
for number in range(50):
    connection.execute("INSERT INTO t VALUES (?)", (number,))
"""


def test_where_other_machines_may_write_too_there_is_no_memory_to_share_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_database, "NETWORK", ("",))  # every kind of file system
    with closing(open_shared_database(tmp_path / "a.db", make_tables)) as opened:
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("truncate",)
        writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "a.db")]) for _ in range(2)]
        assert [writer.wait(PATIENCE) for writer in writers] == [0, 0]
        assert opened.execute("SELECT count(*) FROM t").fetchone() == (100,)
    assert not [file.name for file in tmp_path.iterdir() if file.name.endswith(("-wal", "-shm"))]


def test_a_file_written_ahead_before_its_directory_was_shared_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_shared_database(tmp_path / "a.db", make_tables)) as opened:
        opened.execute("INSERT INTO t VALUES (1)")
    monkeypatch.setattr(shared_database, "NETWORK", ("",))
    with closing(open_shared_database(tmp_path / "a.db", make_tables)) as opened:
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("truncate",)
        assert opened.execute("SELECT x FROM t").fetchall() == [(1,)]
