"""What results look like is learned, kept on disk, and shared by processes."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ot.proxied.catalogue_files import server_file
from ot.proxied.learned_shapes import LearnedShapes
from ot.registry.proxy_target import ServerIdentity
from pace import PATIENCE, effort

GITHUB = ServerIdentity("github", "e1")
LEARNER = """
import sys
from pathlib import Path
from ot.proxied.learned_shapes import LearnedShapes
from ot.registry.proxy_target import ServerIdentity

GITHUB = ServerIdentity("github", "e1")
shapes = LearnedShapes(Path(sys.argv[1]), write_seconds=60)
for round in range(10):
    for _ in range(5):
        shapes.learn(GITHUB, "search", "h1", {"id": 1, sys.argv[2]: "x"})
    shapes.flush()
"""


def file_of(directory: Path) -> Path:
    (file,) = directory.glob("*.shapes.json")
    return file


def test_a_shape_is_known_at_once_and_after_a_restart(tmp_path: Path) -> None:
    shapes = LearnedShapes(tmp_path / "servers")
    assert shapes.look_up(GITHUB, "search", "h1") is None
    shapes.learn(GITHUB, "search", "h1", {"id": 1})
    shapes.learn(GITHUB, "search", "h1", {"id": 2, "title": "words"})
    for known in (shapes, _restarted(shapes, tmp_path)):
        found = known.look_up(GITHUB, "search", "h1")
        assert found
        assert (found.text, found.count) == ("{id: int, title?: str}", 2)
    assert "words" not in file_of(tmp_path / "servers").read_text()


def _restarted(shapes: LearnedShapes, tmp_path: Path) -> LearnedShapes:
    shapes.flush()
    return LearnedShapes(tmp_path / "servers")


def test_what_was_learned_under_the_name_alone_is_taken_over(tmp_path: Path) -> None:
    before = LearnedShapes(tmp_path)
    before.learn(GITHUB, "search", "h1", {"id": 1})
    before.flush()
    file_of(tmp_path).rename(server_file(tmp_path, "github", "shapes"))
    shapes = LearnedShapes(tmp_path)
    shapes.learn(GITHUB, "search", "h1", {"id": 2})
    shapes.flush()
    found = LearnedShapes(tmp_path).look_up(GITHUB, "search", "h1")
    assert found
    assert found.count == 2


def test_a_changed_definition_makes_it_forget(tmp_path: Path) -> None:
    shapes = LearnedShapes(tmp_path)
    shapes.learn(GITHUB, "search", "h1", {"id": 1})
    assert shapes.look_up(GITHUB, "search", "h2") is None
    shapes.learn(GITHUB, "search", "h2", [1])
    shapes.flush()
    found = LearnedShapes(tmp_path).look_up(GITHUB, "search", "h2")
    assert found
    assert (found.text, found.count) == ("list[int]", 1)
    assert shapes.look_up(GITHUB, "search", "h1") is None


def test_it_is_written_a_little_later_by_another_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = threading.Event()
    writers: list[str] = []

    def write(path: Path, value: object) -> None:
        writers.append(threading.current_thread().name)
        written.set()

    monkeypatch.setattr("ot.proxied.learned_shapes.write_json", write)
    shapes = LearnedShapes(tmp_path, write_seconds=0.01)
    for _ in range(100):
        shapes.learn(GITHUB, "search", "h1", {"id": 1})
    assert written.wait(PATIENCE)
    shapes.flush()
    assert writers[0] != threading.current_thread().name
    assert len(writers) < 50


def test_learning_the_shapes_of_values_costs_little(tmp_path: Path) -> None:
    shapes = LearnedShapes(tmp_path, write_seconds=60)
    value = [{"id": n, "title": "x", "owner": {"login": "y"}} for n in range(1000)]
    with effort() as spent:
        for _ in range(20):
            shapes.learn(GITHUB, "search", "h1", value)
    assert spent.loops < 160
    shapes.flush()


def test_its_files_are_the_users_alone(tmp_path: Path) -> None:
    shapes = LearnedShapes(tmp_path / "servers")
    shapes.learn(GITHUB, "search", "h1", 1)
    shapes.flush()
    assert stat.S_IMODE(file_of(tmp_path / "servers").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "servers").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"tools": 3}', '{"tools": {"a": {"hash": "h"}}}', '{"tools": {"a": 1}}']
)
def test_a_damaged_file_is_learned_anew(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    shapes = LearnedShapes(tmp_path)
    shapes.learn(GITHUB, "search", "h1", 1)
    shapes.flush()
    file_of(tmp_path).write_text(damage)
    again = LearnedShapes(tmp_path)
    assert again.look_up(GITHUB, "search", "h1") is None
    assert "not used" in caplog.text or "damaged" in caplog.text
    again.learn(GITHUB, "search", "h1", 1)
    again.flush()
    assert json.loads(file_of(tmp_path).read_text())["tools"]["search"]["count"] == 1


def test_what_cannot_be_written_is_known_all_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "servers").write_text("a file")
    shapes = LearnedShapes(tmp_path / "servers")
    shapes.learn(GITHUB, "search", "h1", 1)
    shapes.flush()
    assert "could not be written" in caplog.text
    assert shapes.look_up(GITHUB, "search", "h1")


def test_processes_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    learners = [
        subprocess.Popen([sys.executable, "-c", LEARNER, str(tmp_path), field]) for field in ("title", "note", "url")
    ]
    assert [learner.wait(60) for learner in learners] == [0, 0, 0]
    found = LearnedShapes(tmp_path).look_up(GITHUB, "search", "h1")
    assert found
    assert found.count == 150
    assert {"title?: str", "note?: str", "url?: str"} <= set(found.text.strip("{}").split(", "))


def test_a_revision_tells_when_there_is_something_new_to_show(tmp_path: Path) -> None:
    shapes = LearnedShapes(tmp_path, write_seconds=60)
    seen: list[int] = []
    for _ in range(12):
        shapes.learn(GITHUB, "search", "h1", {"id": 1})
        seen.append(shapes.revision(GITHUB))
    assert seen == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10]
    shapes.learn(GITHUB, "search", "h1", {"id": "x"})
    assert shapes.revision(GITHUB) == 11
    shapes.flush()
