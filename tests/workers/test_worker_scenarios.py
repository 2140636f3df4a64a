"""The scenarios of persistent workers, with the real uv and a real dependency from the index."""

from __future__ import annotations

import ast
import asyncio
import contextvars
import logging
import os
import signal
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import anyio
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import ot_tools
from ot.config.paths import Paths
from ot.logs import current_principal
from ot.registry.pep723 import ScriptMetadata, script_metadata
from ot.workers import pool
from ot.workspace import Workspace
from pace import PATIENCE
from proxied.desk import until
from run_app import error_of, paths_in, running_app, value_of
from server_process import process_tree
from workers.door import Door, extension, source_of
from workers.process_watch import assert_gone, below_this, command
from workers.watched_workers import write_pack

pytestmark = pytest.mark.anyio

SIX = '''# /// script
# requires-python = ">=3.12"
# dependencies = ["six"]
# ///
"""A pack that needs a package of its own."""
import os
from importlib.util import find_spec

import six


def version() -> str:
    """Return the package's version."""
    return six.__version__


def place() -> str:
    """Return where the package lies."""
    return six.__file__


def sees(*, module: str) -> bool:
    """Return whether the worker could import a module."""
    return find_spec(module) is not None


def own_pid() -> int:
    """Return the worker's process id."""
    return os.getpid()


def search(*, query: str, count: int = 3) -> str:
    """Search for something."""
    return f"{query} {count}"
'''


def extension_app(
    directory: Path, packs: Mapping[str, str], config: Mapping[str, Any] | None = None, **options: Any
) -> Workspace:
    """Return an Workspace whose user has written *packs*."""
    paths = paths_in(directory, config or {})
    for name, source in packs.items():
        write_pack(paths.global_dir, name, source)
    return Workspace.alone(paths, **options)


@pytest.mark.scenario("002-01", "002-02", "002-05", "002-13")
async def test_the_first_call_installs_and_starts_a_worker_and_later_calls_use_it(tmp_path: Path) -> None:
    """uv resolves and installs; the interpreter that it made is then executed itself, so no uv stays resident."""
    app = extension_app(tmp_path, {"sixpack": SIX})
    try:
        before = below_this()
        with anyio.fail_after(100):
            assert value_of(await app.run("sixpack.version()")).startswith("1.")
            first = int(value_of(await app.run("sixpack.own_pid()")))
            assert first == int(value_of(await app.run("sixpack.own_pid()")))
            place = value_of(await app.run("sixpack.place()"))
        started = [command(pid) for pid in below_this() - before]
        assert 1 == len([line for line in started if line.endswith("bootstrap.py ") and "guard.py" not in line])
        assert first in {stat.pid for stat in process_tree(first)}
        # An environment that uv keeps for this file alone: neither the server's nor another pack's.
        assert "environments-" in place and not place.startswith(sys.prefix)
        seen = "[sixpack.sees(module=name) for name in ('six', 'pydantic', 'ot')]"
        assert value_of(await app.run(seen)) == "[true,false,false]"
    finally:
        await app.aclose()
    assert_gone([first])


@pytest.mark.scenario("000-47")
async def test_prefixes_of_parameters_work_for_extension_packs(tmp_path: Path) -> None:
    app = extension_app(tmp_path, {"sixpack": SIX})
    try:
        assert "x 5" == value_of(await app.run("sixpack.search(q='x', c=5)"))
        assert "x 3" == value_of(await app.run("sixpack.search('x')"))
    finally:
        await app.aclose()


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        import time

        return time.monotonic() + self.ahead


@pytest.mark.scenario("002-03")
async def test_a_worker_that_was_idle_for_ten_minutes_ends_and_leaves_the_pool(tmp_path: Path) -> None:
    clock = Clock()
    door = Door(tmp_path, clock=clock)
    try:
        await door("calm.echo", nonce="x")
        worker = door.pid("calm")
        clock.ahead = 595
        door.pool.reap_idle()
        assert worker == door.pid("calm")
        clock.ahead = 605
        door.pool.reap_idle()
        assert [] == door.workers("calm")
        await door.pool._settle()
        assert_gone([worker])
    finally:
        await door.aclose()


async def test_of_idle_workers_beyond_a_number_the_one_used_longest_ago_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "MOST_IDLE", 2)
    door = Door(tmp_path)
    spec = door.specs["calm"]
    try:
        for principal in ("ann", "bob", "carl"):
            door.specs["calm"] = replace(spec, principal=principal)
            await door("calm.echo", nonce="x")
        assert ["bob", "carl"] == sorted(worker.spec.principal for worker in door.workers("calm"))
    finally:
        await door.aclose()


async def test_the_idle_time_is_the_users_to_choose(tmp_path: Path) -> None:
    app = extension_app(tmp_path, {"calm": source_of("calm")}, {"workers": {"packs": {"calm": {"idle_seconds": 0.2}}}})
    try:
        worker = int(value_of(await app.run("calm.own_pid()")))
        with anyio.fail_after(PATIENCE):
            while app.host.workers._all():  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.05)
            await app.host.workers._settle()
        assert_gone([worker])
        assert worker != int(value_of(await app.run("calm.own_pid()")))
    finally:
        await app.aclose()


@pytest.mark.scenario("002-04")
async def test_each_call_starts_the_idle_time_anew(tmp_path: Path) -> None:
    clock = Clock()
    door = Door(tmp_path, clock=clock)
    try:
        await door("calm.echo", nonce="x")
        worker = door.pid("calm")
        first = door.workers("calm")[0].last_used
        await door("calm.echo", nonce="x")
        second = door.workers("calm")[0].last_used
        assert second > first
        # Ten minutes after the first call, but not after the second.
        clock.ahead = first + 600 - clock() + (second - first) / 2
        door.pool.reap_idle()
        assert worker == door.pid("calm")
    finally:
        await door.aclose()


def headed(*lines: str) -> str:
    header = "\n".join(["# /// script", *(f"# {line}" for line in lines), "# ///"])
    return f"{header}\ndef f(): return 'called'\n"


@pytest.mark.scenario("002-06")
async def test_a_pack_whose_header_is_no_toml_is_unavailable_with_the_reason_and_the_others_work(
    tmp_path: Path,
) -> None:
    packs = {"good": headed("dependencies = [", "]"), "bad": headed('dependencies = ["six"')}
    app = extension_app(tmp_path, packs)
    try:
        assert script_metadata(packs["bad"]) is None
        assert "called" == value_of(await app.run("good.f()"))
        text = error_of(await app.run("bad.f()"))
        assert "bad_tools.py: line 2: the '# /// script' block is not valid TOML" in text
    finally:
        await app.aclose()


INSIDE = '''
import os

from ot.execution.tool_context import current_tool_context


def where() -> dict:
    """Tell what is seen from inside."""
    context = current_tool_context()
    return {"pid": os.getpid(), "packs": sorted(context.registry.packs), "alias": dict(context.config.aliases)}
'''


@pytest.mark.scenario("002-07", "002-08", "002-12")
async def test_a_bundled_pack_runs_in_the_servers_process_with_the_registry_and_the_configuration(
    tmp_path: Path,
) -> None:
    import os

    async with running_app(tmp_path, {"inside": INSIDE}, {"aliases": {"w": "inside.where"}}) as app:
        # A bundled file has no header.
        assert script_metadata(INSIDE) == ScriptMetadata(present=False)
        assert "in_process" == app.picture.registry.tool("inside", "where").backend
        found = value_of(await app.run("inside.where()"))
    assert f'"pid":{os.getpid()}' in found
    assert '"inside"' in found and '"ot"' in found
    assert '"alias":{"w":"inside.where"}' in found


def imported_by(file: Path) -> set[str]:
    """Return the packages that a file imports, anywhere in it, without those of the standard library and its own."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    ours = {"ot", "ot_sdk", "ot_tools", "mcp_core"}
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - ours


@pytest.mark.scenario("002-09", "002-12")
def test_what_bundled_packs_import_the_distribution_depends_on_and_none_has_a_header() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bundled = {canonicalize_name(Requirement(line).name) for line in project["dependencies"]}
    homes = packages_distributions()
    files = sorted(Path(ot_tools.__file__).parent.glob("*.py"))
    assert {"file.py", "_text_search.py"} <= {file.name for file in files}
    imported = {name for file in files for name in imported_by(file)}
    assert imported
    for name in imported:
        assert bundled & {canonicalize_name(home) for home in homes[name]}, f"{name} is no dependency of ours"
    for file in files:
        assert script_metadata(file.read_text(encoding="utf-8")) == ScriptMetadata(present=False)


@pytest.mark.scenario("002-10", "002-11")
async def test_a_projects_packs_are_found_and_go_before_the_users(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, {})
    write_pack(paths.global_dir, "both", "def who(): return 'user'\n")
    write_pack(paths.global_dir, "mine", "def who(): return 'user'\n")
    write_pack(paths.cwd / ".onetool", "both", "def who(): return 'project'\n")
    write_pack(paths.cwd / ".onetool", "theirs", "def who(): return 'project'\n")
    app = Workspace.alone(Paths.of(paths.cwd, paths.global_dir), trust_project=True)
    try:
        program = "[both.who(), mine.who(), theirs.who()]"
        value, note = (await app.run(program)).texts
        assert '["project","user","project"]' == value
        assert "the project's pack 'both' replaces your pack 'both'" in note
        assert {"worker"} == {app.picture.registry.tool(pack, "who").backend for pack in ("both", "mine", "theirs")}
    finally:
        await app.aclose()


@pytest.mark.scenario("002-14")
async def test_a_pack_without_a_header_is_a_worker_too_and_has_no_dependencies(tmp_path: Path) -> None:
    plain = "import os\ndef own_pid(): return os.getpid()\n"
    needy = "def f():\n    import six\n    return six.__version__\n"
    app = extension_app(tmp_path, {"plain": plain, "needy": needy})
    try:
        import os

        assert os.getpid() != int(value_of(await app.run("plain.own_pid()")))
        reply = await app.run("needy.f()")
        assert reply.is_error and "No module named 'six'" in reply.texts[-1]
    finally:
        await app.aclose()


async def test_what_a_worker_logs_is_of_whoever_called_and_its_death_of_nobody(tmp_path: Path) -> None:
    """Who came first started the worker, which works for everyone; so what is logged must not be theirs."""
    lines = list[tuple[str, str]]()
    keep = logging.Handler()
    keep.emit = lambda record: lines.append((current_principal.get(), record.getMessage()))
    logging.root.addHandler(keep)
    source = '"""Says things."""\nimport ot_sdk\ndef say(*, text: str) -> None:\n    ot_sdk.log(text, "warning")\n'
    door = Door(tmp_path / "state", [extension("speaker", source)])
    try:
        for who in ("token|ann", "token|bob"):
            asked = contextvars.copy_context()
            asked.run(current_principal.set, who)
            call = door("speaker.say", text=f"words of {who}")
            await asyncio.get_running_loop().create_task(call, context=asked)
        os.kill(door.pid("speaker"), signal.SIGKILL)
        await until(lambda: any("died" in line for _, line in lines))
    finally:
        logging.root.removeHandler(keep)
        await door.aclose()
    said = {text: who for who, line in lines for text in ("of token|ann", "of token|bob", "died") if text in line}
    assert said == {"of token|ann": "token|ann", "of token|bob": "token|bob", "died": ""}
