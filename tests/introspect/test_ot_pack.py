"""The ot pack, asked by programs."""

from __future__ import annotations

import json
import platform
import threading
from pathlib import Path
from typing import Any

import pytest

from ot.registry.tool import Tool
from ot.registry.tool_registry import Pack
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.version import installed_version
from ot.workspace import Workspace
from run_app import BRAVE, BUNDLED, error_of, paths_in, run_in, running_app, value_of

pytestmark = pytest.mark.anyio


async def ask(tmp_path: Path, call: str, **options: Any) -> Any:
    return json.loads(value_of(await run_in(tmp_path, f"__format__ = 'json'\n{call}", **options)))


@pytest.mark.scenario("001-66")
async def test_the_version_is_the_installed_one(tmp_path: Path) -> None:
    assert value_of(await run_in(tmp_path, "ot.version()")) == installed_version()


async def test_the_configuration_is_shown_without_what_it_holds(tmp_path: Path) -> None:
    config = {
        "aliases": {"ws": "brave.search"},
        "snippets": {"hi": {"body": '"hi"', "description": "Say hi."}, "ho": {"body": "1"}},
        "servers": {"time": {"command": "time-server", "enabled": False}},
    }
    assert await ask(tmp_path, "ot.config()", config=config) == {
        "aliases": {"ws": "brave.search"},
        "snippets": {"hi": {"description": "Say hi."}, "ho": {"description": ""}},
        "servers": ["time"],
    }


@pytest.mark.scenario("001-10")
async def test_health_tells_how_every_part_is(tmp_path: Path) -> None:
    health, brief, tools = await ask(tmp_path, "[ot.health(), ot.health(info='min'), len(ot.tools())]", packs=PACKS)
    assert list(brief) == ["version", "python", "cwd", "engine", "registry", "proxy"]
    assert brief["engine"] == {"name": "portable", "status": "ok"}
    assert brief == {key: health[key] for key in brief} | {"engine": brief["engine"]}
    assert health["version"] == installed_version()
    assert health["python"] == platform.python_version()
    assert health["cwd"] == str(tmp_path / "work")
    assert (health["engine"]["name"], health["engine"]["status"]) == ("portable", "ok")
    assert health["registry"] == {"status": "ok", "tool_count": tools}
    assert health["proxy"] == {"status": "ok", "server_count": 0, "servers": {}}
    assert health["project"] == "none"
    assert health["ledger"] == {"kind": "file", "survives": "a crash or a kill"}
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


@pytest.mark.scenario("001-14")
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
        ("handle='x', offset=0", "ValueError: offset must be >= 1 (1-indexed), got 0"),
        ("handle='x', limit=0", "ValueError: limit must be >= 1, got 0"),
        ("handle='x'", "LookupError: result 'x' not found"),
        ("handle='../../etc/passwd'", "LookupError: result '../../etc/passwd' not found"),
        ("handle=1", "TypeError: ot.result() argument 'handle' must be str, not int 1"),
    ],
)
@pytest.mark.scenario("001-59", "001-63", "001-64")
async def test_a_page_that_cannot_be_is_refused_in_these_words(arguments: str, words: str, tmp_path: Path) -> None:
    assert (
        error_of(await run_in(tmp_path, f"ot.result({arguments})")).splitlines()[0].partition(". Expected")[0] == words
    )


@pytest.mark.scenario("001-56", "001-57", "001-61", "001-62")
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


@pytest.mark.scenario("001-61")
async def test_a_page_is_shown_line_by_line_as_it_was_stored(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={"output": {"max_inline_size": 1000}}) as app:
        code = """"\\n".join(f"\\tif x == 'a': y = \\"b: c\\"  # {n}" for n in range(2000))"""
        handle = json.loads(value_of(await app.run(code)))["handle"]
        shown = value_of(await app.run(f"ot.result(handle='{handle}', limit=3)"))
    lines = "".join(f"  \tif x == 'a': y = \"b: c\"  # {n}\n" for n in range(3))
    assert shown == f"lines: |\n{lines}total_lines: 2000\nreturned: 3\noffset: 1\nhas_more: true"


@pytest.mark.scenario("001-58")
async def test_a_fuzzy_search_gives_similar_lines_the_most_similar_first(tmp_path: Path) -> None:
    lines = ["cnofig", "nothing alike", "the configuration", "zzz", "confi", "config"]
    async with running_app(tmp_path, config={"output": {"max_inline_size": 1000}}) as app:
        handle = json.loads(value_of(await app.run(f"'\\n'.join({lines} + ['0' * 40] * 100)")))["handle"]
        asked = f"__format__ = 'json'\not.result(handle='{handle}', search='config', fuzzy={{}})['lines']"
        assert json.loads(value_of(await app.run(asked.format(False)))) == ["the configuration", "config"]
        # By their likeness, and of two that are alike the earlier.
        similar = json.loads(value_of(await app.run(asked.format(True))))
        assert similar == ["the configuration", "config", "confi", "cnofig"]


# ---------------------------------------------------------------- the specification's own words

EXCEL = """
    def open(*, path: str, sheet: str = "") -> dict:
        \"\"\"Open a workbook.

        Args:
            path: The file.

        Returns:
            The cells.

        Example:
            excel.open(path="a.xlsx")
        \"\"\"
        return {}
"""
PACKS = {"brave": BRAVE, "excel": EXCEL}


@pytest.mark.scenario("001-08")
async def test_the_configuration_is_shown_like_this(tmp_path: Path) -> None:
    config = {
        "aliases": {"ws": "brave.web_search", "alias_f": "demo.foo"},
        "snippets": {
            "foon": {"body": "1", "description": "Get foo() for n items"},
            "barn": {"body": "1", "description": "Get bar() for n items"},
        },
        "servers": {"proxy_package_version": {"command": "package-version", "enabled": False}},
    }
    assert value_of(await run_in(tmp_path, "ot.config()", config=config)) == (
        "aliases: {ws: brave.web_search, alias_f: demo.foo}\n"
        "snippets: {foon: {description: Get foo() for n items}, barn: {description: Get bar() for n items}}\n"
        "servers: [proxy_package_version]"
    )


@pytest.mark.scenario("001-09")
async def test_an_empty_configuration_is_shown_like_this(tmp_path: Path) -> None:
    assert value_of(await run_in(tmp_path, "ot.config()")) == "{aliases: {}, snippets: {}, servers: []}"


async def test_health_writes_each_part_on_its_own_line(tmp_path: Path) -> None:
    lines = value_of(await run_in(tmp_path, "ot.health()")).splitlines()
    assert f"version: {installed_version()}" in lines
    assert "proxy: {status: ok, server_count: 0, servers: {}}" in lines


@pytest.mark.scenario("001-01", "001-04")
async def test_all_tools_are_listed_by_name_and_description(tmp_path: Path) -> None:
    tools = await ask(tmp_path, "ot.tools()", packs=PACKS)
    assert {"name": "brave.search", "description": "Search with brave."} in tools
    assert all(list(tool) == ["name", "description"] for tool in tools)
    assert {tool["name"].partition(".")[0] for tool in tools} == {"excel", *BUNDLED}
    assert tools == await ask(tmp_path, "ot.tools(info='min')", packs=PACKS)


@pytest.mark.scenario("001-02", "001-03")
async def test_tools_can_be_listed_by_a_part_of_their_names(tmp_path: Path) -> None:
    names = await ask(tmp_path, "ot.tools(pattern='SEARCH', info='list')", packs=PACKS)
    assert names == [
        "brave.search", "brave.web_search", "code.search", "context7.search", "documents.search", "file.search",
        "guide.search", "memory.search", "rg.search",
    ]  # fmt: skip


@pytest.mark.scenario("001-05")
async def test_in_full_a_tool_has_all_that_is_known(tmp_path: Path) -> None:
    (tool,) = await ask(tmp_path, "ot.tools(pattern='excel.open', info='full')", packs=PACKS)
    assert tool == {
        "name": "excel.open",
        "signature": "excel.open(path: str, sheet: str = '') -> dict",
        "description": "Open a workbook.",
        "source": "local",
        "args": ["path: The file."],
        "returns": "The cells.",
        "example": 'excel.open(path="a.xlsx")',
    }
    (bare,) = await ask(tmp_path, "ot.tools(pattern='brave.search', info='full')", packs=PACKS)
    assert list(bare) == ["name", "signature", "description", "source"]


@pytest.mark.scenario("001-25", "001-28")
async def test_all_packs_are_listed_with_their_source_and_size(tmp_path: Path) -> None:
    packs = await ask(tmp_path, "ot.packs()", packs=PACKS)
    assert {"name": "brave", "source": "local", "tool_count": 2} in packs
    assert [pack["name"] for pack in packs] == sorted(["excel", *BUNDLED])
    assert packs == await ask(tmp_path, "ot.packs(info='min')", packs=PACKS)


@pytest.mark.scenario("001-26", "001-27")
async def test_packs_can_be_listed_by_a_part_of_their_names(tmp_path: Path) -> None:
    assert await ask(tmp_path, "ot.packs(pattern='BRAV', info='list')", packs=PACKS) == ["brave"]


@pytest.mark.scenario("001-29", "001-30")
async def test_in_full_a_pack_has_its_instructions_and_tools(tmp_path: Path) -> None:
    paths_in(tmp_path)
    (tmp_path / "user" / "prompts.yaml").write_text("prompts: {packs: {excel: Close what you open.}}\n")
    assert await ask(tmp_path, "ot.packs(pattern='excel', info='full')", packs=PACKS) == [
        {
            "name": "excel",
            "source": "local",
            "tool_count": 1,
            "instructions": "Close what you open.",
            "tools": [{"name": "excel.open", "description": "Open a workbook."}],
        }
    ]
    (brave,) = await ask(tmp_path, "ot.packs(pattern='brave', info='full')", packs=PACKS)
    assert "instructions" not in brave


async def test_prompts_that_appear_later_are_taken_up(tmp_path: Path) -> None:
    async with running_app(tmp_path, packs=PACKS) as app:
        assert "instructions" not in value_of(await app.run("ot.packs(info='full')"))
        (tmp_path / "user" / "prompts.yaml").write_text("prompts: {packs: {excel: Close what you open.}}\n")
        assert "\nClose what you open.\n\nTools:" in value_of(await app.run("ot.help(query='excel')"))


@pytest.mark.scenario("001-55")
async def test_without_more_words_the_first_hundred_lines_are_read(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={"output": {"max_inline_size": 1000}}) as app:
        stored = json.loads(value_of(await app.run("'\\n'.join([str(n) for n in range(1, 501)])")))
        page = json.loads(value_of(await app.run(f"__format__ = 'json'\not.result(handle='{stored['handle']}')")))
        assert page["lines"] == [str(n) for n in range(1, 101)]
        assert (page["offset"], page["returned"], page["total_lines"], page["has_more"]) == (1, 100, 500, True)


@pytest.mark.scenario("001-60")
async def test_a_result_that_is_too_old_is_said_to_have_expired(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={"output": {"max_inline_size": 1000, "result_ttl": 60}}) as app:
        handle = json.loads(value_of(await app.run("'x\\n' * 5000")))["handle"]
        (meta,) = (tmp_path / "user" / "tmp").glob("*.meta.json")
        known = json.loads(meta.read_text())
        meta.write_text(json.dumps(known | {"created_at": "2020-01-01T00:00:00Z"}))
        text = error_of(await app.run(f"ot.result(handle='{handle}')"))
        assert text.splitlines()[0] == f"LookupError: result '{handle}' has expired"


@pytest.mark.parametrize("program", ["ot.health()['version']", "no_such_name()"])
async def test_packs_that_are_read_for_an_answer_do_not_hold_up_the_event_loop(tmp_path: Path, program: str) -> None:
    read_by: list[str] = []

    def read_tools() -> list[Tool]:
        read_by.append(threading.current_thread().name)
        return []

    app = Workspace.alone(paths_in(tmp_path), packs=[Pack("unread", "local", read_tools)], engine=PortableEngine())
    try:
        await app.run(program)
    finally:
        await app.aclose()
    assert read_by
    assert threading.main_thread().name not in read_by


@pytest.mark.scenario("001-22")
async def test_an_ot_value_is_flow_style_where_the_program_is_that_call_and_a_value_where_it_is_more(
    tmp_path: Path,
) -> None:
    async with running_app(tmp_path, config={"aliases": {"v": "ot.version"}}) as app:
        assert value_of(await app.run("ot.config()")) == "{aliases: {v: ot.version}, snippets: {}, servers: []}"
        assert value_of(await app.run("{'c': ot.config()}")) == (
            '{"c":{"aliases":{"v":"ot.version"},"snippets":{},"servers":[]}}'
        )
