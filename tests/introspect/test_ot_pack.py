"""The ot pack, asked by programs."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from ot.version import installed_version
from run_app import error_of, run_in, running_app, value_of

pytestmark = pytest.mark.anyio


async def ask(tmp_path: Path, call: str, **options: Any) -> Any:
    return json.loads(value_of(await run_in(tmp_path, f"__format__ = 'json'\n{call}", **options)))


async def test_the_version_is_the_installed_one(tmp_path: Path) -> None:
    assert value_of(await run_in(tmp_path, "ot.version()")) == installed_version()


async def test_the_configuration_is_shown_without_what_it_holds(tmp_path: Path) -> None:
    config = {
        "aliases": {"ws": "brave.search"},
        "snippets": {"hi": {"body": '"hi"', "description": "Say hi."}, "ho": {"body": "1"}},
    }
    assert await ask(tmp_path, "ot.config()", config=config) == {
        "aliases": {"ws": "brave.search"},
        "snippets": {"hi": {"description": "Say hi."}, "ho": {"description": ""}},
        "servers": [],
    }


async def test_health_tells_how_every_part_is(tmp_path: Path) -> None:
    health = await ask(tmp_path, "ot.health()")
    assert health["version"] == installed_version()
    assert health["python"] == platform.python_version()
    assert health["cwd"] == str(tmp_path / "work")
    assert (health["engine"]["name"], health["engine"]["status"]) == ("portable", "ok")
    assert health["registry"]["status"] == "ok"
    assert health["registry"]["tool_count"] > 8
    assert health["proxy"] == {"status": "ok", "server_count": 0, "servers": {}}
    assert health["project"] == "none"
    assert "warnings" not in health


async def test_health_names_a_broken_pack(tmp_path: Path) -> None:
    registry = (await ask(tmp_path, "ot.health()", packs={"bad": "def f(:"}))["registry"]
    assert registry["status"] == "degraded"
    assert registry["broken"] == {"bad": "bad.py:1: invalid syntax"}


async def test_health_and_the_first_reply_tell_of_a_project_that_is_not_trusted(tmp_path: Path) -> None:
    project = tmp_path / "work" / ".onetool"
    project.mkdir(parents=True)
    (project / "onetool.yaml").write_text("aliases: {x: file.read}\n")
    async with running_app(tmp_path) as app:
        first = await app.run("__format__ = 'json'\not.health()")
        health, notice = first.texts
        assert json.loads(health)["project"] == "untrusted"
        assert "is not trusted and is not used" in json.loads(health)["warnings"][0]
        assert notice.startswith("note: ")
        assert "onetool trust" in notice
        assert len((await app.run("1")).texts) == 1


async def test_reload_reads_the_configuration_again(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={}) as app:
        assert await_error(await app.run("v()"))
        (tmp_path / "user" / "onetool.yaml").write_text("aliases: {v: ot.version}\n")
        assert value_of(await app.run("ot.reload()")) == "OK: Configuration reloaded"
        assert value_of(await app.run("v()")) == installed_version()


def await_error(reply: Any) -> str:
    text = error_of(reply)
    assert "NameError" in text
    return text


async def test_a_configuration_that_cannot_be_used_leaves_the_old_one(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={"aliases": {"v": "ot.version"}}) as app:
        (tmp_path / "user" / "onetool.yaml").write_text("version: 1\nalaises: {}\n")
        reply = await app.run("ot.reload()")
        assert reply.is_error
        text, note = reply.texts
        assert "ConfigError" in text
        assert "not used" in note
        assert "onetool.yaml:2" in text
        assert "aliases" in text
        assert value_of(await app.run("v()")) == installed_version()


async def test_a_run_under_way_keeps_its_picture(tmp_path: Path) -> None:
    config = tmp_path / "user" / "onetool.yaml"
    editor = f"from pathlib import Path\ndef empty():\n    Path({str(config)!r}).write_text('{{}}')\n"
    async with running_app(tmp_path, packs={"editor": editor}, config={"aliases": {"v": "ot.version"}}) as app:
        assert value_of(await app.run("editor.empty()\not.reload()\nv()")) == installed_version()
        assert "NameError" in error_of(await app.run("v()"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("handle='x', offset=0", "offset must be >= 1 (1-indexed), got 0"),
        ("handle='x', limit=0", "limit must be >= 1, got 0"),
        ("handle='x'", "result 'x' not found"),
        ("handle='../../etc/passwd'", "not found"),
        ("handle=1", "not found"),
    ],
)
async def test_a_page_that_cannot_be_is_refused_in_these_words(arguments: str, words: str, tmp_path: Path) -> None:
    assert words in error_of(await run_in(tmp_path, f"ot.result({arguments})"))


async def test_pages_are_read_by_place_and_by_search(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={"output": {"max_inline_size": 1000}}) as app:
        lines = "\\n".join(f"line {n}" for n in range(1, 1001))
        handle = json.loads(value_of(await app.run(f"'{lines}'")))["handle"]

        async def page(**query: Any) -> Any:
            given = ", ".join(f"{key}={value!r}" for key, value in query.items())
            return json.loads(value_of(await app.run(f"__format__ = 'json'\not.result(handle='{handle}', {given})")))

        first = await page(limit=2)
        assert (first["lines"], first["offset"], first["has_more"]) == (["line 1", "line 2"], 1, True)
        assert (first["total_lines"], first["returned"]) == (1000, 2)
        assert (await page(offset=999, limit=5))["lines"] == ["line 999", "line 1000"]
        assert (await page(search="^line 99.$", offset=2, limit=2))["lines"] == ["line 991", "line 992"]
        assert (await page(search="lnie 777", fuzzy=True, limit=1))["lines"] == ["line 777"]
