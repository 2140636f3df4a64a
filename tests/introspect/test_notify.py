"""Messages go to the file of the first topic that fits, whole, whoever else writes."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from ot.config.models import Topic
from ot.introspect.notify import MAX_MESSAGE_BYTES, append, document, fits, notify
from run_app import error_of, run_in, running_app, value_of


@pytest.mark.parametrize(
    ("pattern", "topic", "fitting"),
    [
        ("notes", "notes", True),
        ("notes", "notes2", False),
        ("build:*", "build:failed", True),
        ("build:*", "build:linux:failed", False),
        ("build:**", "build:linux:failed", True),
        ("**", "anything:at\nall", True),
        ("*", "a:b", False),
        ("a.c", "abc", False),
        ("[ab]", "a", False),
        ("*:done", "x:done", True),
    ],
)
def test_a_star_stops_at_a_colon_and_two_do_not(pattern: str, topic: str, fitting: bool) -> None:
    assert fits(pattern, topic) is fitting


@given(st.text(max_size=30), st.text(max_size=30))
@example("a: b", " x\n\n")
@example("2026-01-01", "---\n...\n# c\n")
@example("\ud800", "\ud800 \x00")
def test_a_message_can_be_read_back(topic: str, message: str) -> None:
    read: Any = yaml.safe_load(document(topic, message, datetime(2026, 1, 2, tzinfo=UTC)).decode())
    assert read == {"ts": "2026-01-02T00:00:00.000Z", "topic": topic, "message": message}


def test_a_document_looks_like_this() -> None:
    now = datetime(2026, 1, 2, 5, 4, 5, 678_900, tzinfo=timezone(timedelta(hours=2)))
    expected = "---\nts: '2026-01-02T03:04:05.678Z'\ntopic: notes\nmessage: |-\n  Review PR #123:\n  today\n"
    assert document("notes", "Review PR #123:\ntoday", now).decode() == expected


def test_the_first_topic_that_fits_is_taken(tmp_path: Path) -> None:
    files = {name: str(tmp_path / name) for name in ("one", "two")}
    topics = [Topic(pattern="a:*", file=files["one"]), Topic(pattern="a:**", file=files["two"])]
    assert notify(topics, "a:b", "x") == f"OK: a:b -> {files['one']}"
    assert notify(topics, "a:b:c", "x") == f"OK: a:b:c -> {files['two']}"
    assert notify(topics, "b", "x") == "SKIP: no matching topic"


@pytest.mark.parametrize(
    ("topic", "message", "words"),
    [
        ("", "x", "topic must have 1 to 200 characters, got 0"),
        ("t" * 201, "x", "topic must have 1 to 200 characters, got 201"),
        ("t", "é" * MAX_MESSAGE_BYTES, "message must have at most 65,536 bytes, got 131,072"),
        ("t", {"a": 1}, "must be text"),
    ],
)
def test_what_is_too_long_or_no_text_is_refused(topic: str, message: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        notify([Topic(pattern="**", file=str(tmp_path / "f"))], topic, message)
    assert not (tmp_path / "f").exists()


def test_a_file_is_private_and_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ot.introspect.notify.MAX_FILE_BYTES", 10)
    file = tmp_path / "new" / "f.yaml"
    append(file, b"12345678")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    with pytest.raises(ValueError, match="takes no more messages: move it away"):
        append(file, b"123")
    assert file.read_bytes() == b"12345678"


def test_a_link_in_the_file_s_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        append(tmp_path / "link", b"x")
    assert not (tmp_path / "elsewhere").exists()


def test_several_processes_append_whole_documents(tmp_path: Path) -> None:
    file = tmp_path / "shared.yaml"
    code = (
        "import sys\nfrom pathlib import Path\nfrom datetime import UTC, datetime\n"
        "from ot.introspect.notify import append, document\n"
        "for n in range(40):\n"
        "    append(Path(sys.argv[1]), document(sys.argv[2], f'{n} ' + 'x' * 20_000, datetime.now(UTC)))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(file), f"w{n}"]) for n in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    documents = list(yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader))
    for name in ("w0", "w1", "w2"):
        assert [d["message"].split()[0] for d in documents if d["topic"] == name] == [str(n) for n in range(40)]


# ---------------------------------------------------------------- from a program


def topics(*entries: dict[str, str]) -> dict[str, Any]:
    return {"tools": {"msg": {"topics": list(entries)}}}


@pytest.mark.anyio
@pytest.mark.scenario("001-12")
async def test_a_message_is_appended_to_the_file_of_its_topic(tmp_path: Path, home: Path) -> None:
    config = topics({"pattern": "notes", "file": "logs/notes.yaml"}, {"pattern": "home:*", "file": "~/all.yaml"})
    async with running_app(tmp_path, config=config) as app:
        said = value_of(await app.run('ot.notify(topic="notes", message="Remember to review PR #123")'))
        file = tmp_path / "user" / "logs" / "notes.yaml"
        assert said == f"OK: notes -> {file}"
        await app.run('ot.notify(topic="notes", message="again")')
        first, second = yaml.safe_load_all(file.read_text())
        assert (first["topic"], first["message"]) == ("notes", "Remember to review PR #123")
        assert second["message"] == "again"
        await app.run('ot.notify(topic="home:x", message="there")')
        assert "there" in (home / "all.yaml").read_text()


@pytest.mark.anyio
@pytest.mark.scenario("001-13")
async def test_a_topic_that_fits_no_pattern_is_skipped(tmp_path: Path) -> None:
    config = topics({"pattern": "notes", "file": "notes.yaml"})
    reply = await run_in(tmp_path, 'ot.notify(topic="unknown:topic", message="test")', config=config)
    assert value_of(reply) == "SKIP: no matching topic"


@pytest.mark.anyio
async def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "taken").mkdir()
    config = topics({"pattern": "**", "file": "taken"})
    assert "IsADirectoryError" in error_of(await run_in(tmp_path, 'ot.notify(topic="x", message="y")', config=config))
