"""The house put together: pictures, reloads, faces, ends."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from ot.config.inventory import take_inventory
from ot.config.paths import Paths
from ot.config.principal import os_user
from ot.config.trust import Trust
from ot.errors import ConfigError, ResultError, ResultNotFound, UnknownPack, UnknownTool
from ot.workspace import Workspace
from pace import PATIENCE
from run_app import BRAVE, BUNDLED, CONTEXT7, error_of, paths_in, running_app, value_of

pytestmark = pytest.mark.anyio


@pytest.mark.scenario("004-05")
async def test_an_app_offers_the_bundled_packs_and_its_own(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"own": CONTEXT7}) as app:
        assert {"own", *BUNDLED} == set(app.picture.registry.packs)
        assert {"ot.help", "proj.path", "file.read", "brave.search", "own.search"} <= set(app.tool_names())


async def test_no_pack_is_imported_until_a_tool_of_it_is_called(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    source = f"open({str(marker)!r}, 'w').close()\ndef f(): return 1\n"
    async with running_app(tmp_path, {"side": source}) as app:
        assert value_of(await app.run("ot.tools(p='side', i='list')")) == "[side.f]"
        assert "side.f" in value_of(await app.run("ot.help(q='side.f')"))
        assert not marker.exists()
        assert value_of(await app.run("side.f()")) == "1"
        assert marker.exists()


def test_importing_the_app_loads_neither_packs_nor_what_few_runs_need() -> None:
    code = "import sys, json, ot.workspace; print(json.dumps(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    loaded = set(json.loads(out))
    assert {"ot.workspace", "ot_tools"} <= loaded
    assert loaded.isdisjoint({"ot_tools.file", "fastmcp", "mcp", "griffe", "rapidfuzz", "jinja2"})


async def test_a_pack_that_is_given_replaces_a_bundled_one_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with running_app(tmp_path, {"file": "def read(): return 'mine'"}) as app:
            assert value_of(await app.run("file.read()")) == "mine"
    assert any("pack file of" in record.getMessage() for record in caplog.records)


async def test_the_help_of_one_tool_can_be_had(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"brave": BRAVE}) as app:
        assert app.tool_help("brave.search").startswith("# brave.search\nSearch with brave.\n")
        with pytest.raises(UnknownTool):
            app.tool_help("brave.nothing")
        with pytest.raises(UnknownPack):
            app.tool_help("nothing")


async def test_a_stored_result_can_be_had_by_its_caller(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={"output": {"max_inline_size": 1000}}) as app:
        handle = json.loads(value_of(await app.run("'é' * 2000")))["handle"]
        assert app.stored_text(handle, os_user()) == "é" * 2000
        with pytest.raises(ResultNotFound):
            app.stored_text("x" * 22, os_user())
        with pytest.raises(ResultNotFound):
            app.stored_text(handle, "somebody else")


async def test_a_stored_result_that_is_too_large_has_to_be_paged(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={"limits": {"memory_mb": 256}}) as app:
        handle = json.loads(value_of(await app.run("'x' * 5_000_000")))["handle"]
        with pytest.raises(ResultError, match=r"page it with ot\.result\(\)"):
            app.stored_text(handle, os_user())


# ---------------------------------------------------------------- pictures


async def test_a_reload_swaps_the_whole_picture(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={"limits": {"calls": 1}}) as app:
        before = app.picture
        assert "limits.calls" in error_of(await app.run("ot.version()\not.version()"))
        (tmp_path / "user" / "onetool.yaml").write_text("limits: {calls: 2}\n")
        await app.reload()
        assert app.picture is not before
        assert value_of(await app.run("ot.version()\not.version()"))


async def test_a_reload_that_fails_leaves_the_picture(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={}) as app:
        before = app.picture
        (tmp_path / "user" / "onetool.yaml").write_text("limits: [")
        with pytest.raises(ConfigError):
            await app.reload()
        assert app.picture is before
        value, note = (await app.run("1")).texts
        assert (value, "not used" in note) == ("1", True)
        assert value_of(await app.run("2")) == "2"


def test_a_configuration_that_cannot_be_used_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"onetool\.yaml"):
        Workspace.alone(paths_in(tmp_path, {"nonsense": 1}))


async def test_a_trusted_project_is_used_and_keeps_its_results(tmp_path: Path) -> None:
    project = tmp_path / "work" / ".onetool"
    project.mkdir(parents=True)
    (project / "onetool.yaml").write_text("aliases: {v: ot.version}\noutput: {max_inline_size: 1000}\n")
    async with running_app(tmp_path, trust_project=True) as app:
        reply = await app.run("v()")
        assert (len(reply.texts), reply.is_error) == (1, False)
        await app.run("'x' * 2000")
    assert list((project / "tmp").glob("result-*.txt"))


async def test_a_project_that_is_not_trusted_is_inert_and_left_untouched(tmp_path: Path) -> None:
    project = tmp_path / "work" / ".onetool"
    project.mkdir(parents=True)
    (project / "onetool.yaml").write_text("aliases: {v: ot.version}\noutput: {max_inline_size: 10}\n")
    async with running_app(tmp_path, config={"output": {"max_inline_size": 1000}}) as app:
        assert "NameError" in (await app.run("v()")).texts[0]
        await app.run("'x' * 2000")
    assert [file.name for file in project.iterdir()] == ["onetool.yaml"]
    assert list((tmp_path / "user" / "tmp").glob("result-*.txt"))


async def test_a_running_server_takes_up_that_its_project_was_trusted_and_that_it_no_longer_is(tmp_path: Path) -> None:
    project = tmp_path / "work" / ".onetool"
    project.mkdir(parents=True)
    (project / "onetool.yaml").write_text("aliases: {v: ot.version}\n")
    async with running_app(tmp_path) as app:
        trust = Trust(app.paths.global_dir)
        assert "NameError" in (await app.run("v()")).texts[0]
        trust.trust(take_inventory(project))
        assert not (await app.run("v()")).is_error
        trust.untrust(project)
        assert "NameError" in (await app.run("v()")).texts[0]


async def test_a_project_that_was_made_while_the_server_runs_is_used_once_it_is_trusted(tmp_path: Path) -> None:
    project = tmp_path / "work" / ".onetool"
    async with running_app(tmp_path) as app:
        assert not (await app.run("1")).is_error
        project.mkdir()
        (project / "onetool.yaml").write_text("aliases: {v: ot.version}\n")
        assert "is not trusted" in (await app.run("v()")).texts[-1]
        Trust(app.paths.global_dir).trust(take_inventory(project))
        assert not (await app.run("v()")).is_error
        shutil.rmtree(project)
        assert "NameError" in (await app.run("v()")).texts[0]


async def test_the_notice_of_what_was_left_out_comes_with_the_first_reply_alone(tmp_path: Path) -> None:
    (tmp_path / "work" / ".onetool").mkdir(parents=True)
    async with running_app(tmp_path) as app:
        first, second = await app.run("1/0"), await app.run("2")
    assert first.is_error
    assert first.texts[-1].startswith("note: ")
    assert second.texts == ("2",)


async def test_secrets_leave_no_text_of_a_reply(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, {"tools": {"file": {"token": "${TOKEN}"}}})
    secrets = tmp_path / "user" / "secrets.yaml"
    secrets.write_text("TOKEN: abcdef123456\n")
    secrets.chmod(0o600)
    app = Workspace.alone(paths)
    try:
        for command in ("'abcdef' + '123456'", "print('abcdef' + '123456')", "raise ValueError('abcdef' + '123456')"):
            texts = " ".join((await app.run(command)).texts)
            assert "abcdef123456" not in texts, command
            assert "[secret:TOKEN]" in texts
    finally:
        await app.aclose()


# ---------------------------------------------------------------- processes


async def test_nothing_runs_before_the_first_run_and_nothing_after_the_end(tmp_path: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    app = Workspace.alone(paths_in(tmp_path, {"snippets": {"s": {"body": "{{ n }}"}}}))
    # Of those that were there, what another test has left may end at any time.
    assert not set(psutil.Process().children(recursive=True)) - before
    assert value_of(await app.run("$s n=1")) == "1"
    started = set(psutil.Process().children(recursive=True)) - before
    assert started
    await app.aclose()
    _, alive = psutil.wait_procs(list(started), timeout=PATIENCE)
    assert alive == []


async def test_an_app_can_be_started_ahead_of_the_first_run(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        await app.start()
        health = await app.engine.health()
        assert (health.name, health.details["running"]) == (app.engine.name, 0)
        assert value_of(await app.run("1")) == "1"


async def test_many_runs_at_once_are_all_answered(tmp_path: Path) -> None:
    replies: dict[int, str] = {}
    async with running_app(tmp_path, {"brave": BRAVE}) as app:

        async def one(number: int) -> None:
            replies[number] = value_of(await app.run(f"brave.search(query='{number}')"))

        async with anyio.create_task_group() as group:
            for number in range(40):
                group.start_soon(one, number)
    assert replies == {number: f"brave found {number}" for number in range(40)}


def test_the_caller_is_the_user_of_the_system(tmp_path: Path) -> None:
    assert Workspace.alone(Paths.of(tmp_path, tmp_path / "user")).own_caller.principal == f"uid:{os.getuid()}"


async def test_a_broken_configuration_keeps_no_pack_in_an_old_form(tmp_path: Path) -> None:
    paths = paths_in(tmp_path)
    pack = paths.global_dir / "tools" / "mine" / "mine_tools.py"
    pack.parent.mkdir(parents=True)
    pack.write_text('def old() -> int:\n    """Be old."""\n    return 1\n')
    app = Workspace.alone(paths)
    try:
        assert "mine.old" in app.tool_names()
        (paths.global_dir / "onetool.yaml").write_text("nonsense: [")
        pack.write_text('def young() -> int:\n    """Be young."""\n    return 22\n')
        reply = await app.run("'mine'")
        assert "the changed configuration is not used" in reply.texts[-1]
        assert {"mine.old", "mine.young"} & set(app.tool_names()) == {"mine.young"}
        shutil.rmtree(pack.parent)
        await app.run("'mine'")
        assert not [name for name in app.tool_names() if name.startswith("mine.")]
    finally:
        await app.aclose()
