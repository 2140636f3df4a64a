"""The environments of packs, made by the real uv from the real index."""

from __future__ import annotations

import asyncio
import importlib
import os
import platform
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.errors import ToolUnavailable
from ot.processes.child_environ import uv_environ, worker_environ
from ot.processes.guarded_process import GuardedProcess
from ot.workers.pack_directory import PackDirectory
from ot.workers.pack_environment import PackEnvironment, PackEnvironments, find_uv
from pace import PATIENCE
from processes.process_marks import NAME, fresh_environ, marked, within

pytestmark = pytest.mark.anyio

MAIN = "demo_tools.py"
NO_UV = {"PATH": "/nonexistent"}


def pack(*lines: str, body: str = "x = 1") -> dict[str, bytes]:
    """Return the files of a pack whose block has *lines*."""
    return {MAIN: "\n".join(["# /// script", *(f"# {line}" for line in lines), "# ///", body, ""]).encode()}


SIX = pack('dependencies = ["six"]')


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture(scope="session")
def fresh_uv_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache of the session: packages are downloaded once, and nothing is left in the developer's own cache."""
    return str(tmp_path_factory.mktemp("uv-cache"))


@pytest.fixture
def server_environ(fresh_uv_cache: str) -> dict[str, str]:
    """The environment of a server, with secrets in it."""
    secrets = {"ANTHROPIC_API_KEY": "canary-1f6b", "OT_SECRET": "canary-1f6b", "PYTHONPATH": "/canary-1f6b"}
    return {**os.environ, **secrets, "UV_CACHE_DIR": fresh_uv_cache}


@pytest.fixture
async def environments(state: Path, server_environ: dict[str, str]) -> AsyncGenerator[PackEnvironments]:
    made = PackEnvironments(state, server_environ)
    yield made
    await made.aclose()


async def prepare(environments: PackEnvironments, files: dict[str, bytes], **options: Any) -> PackEnvironment:
    with anyio.fail_after(100):
        return await environments.prepare("demo", files, MAIN, **options)


async def failure(environments: PackEnvironments, files: dict[str, bytes], **options: Any) -> str:
    with pytest.raises(ToolUnavailable) as raised:
        await prepare(environments, files, **options)
    assert "demo" == raised.value.pack
    return str(raised.value)


def run(environment: PackEnvironment, code: str) -> str:
    argv = [environment.python, *environment.arguments, "-c", code]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


@contextmanager
def silent_index() -> Generator[tuple[str, socket.socket]]:
    """An index that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield f"http://user:canary-5e1d@127.0.0.1:{server.getsockname()[1]}/simple", server


# ---------------------------------------------------------------- with dependencies


@pytest.mark.scenario("002-05")
async def test_dependencies_are_installed_and_the_servers_own_packages_are_not_seen(
    environments: PackEnvironments,
) -> None:
    lines: list[str] = []
    environment = await prepare(environments, SIX, progress=lines.append)
    find = "import importlib.util as u; print([bool(u.find_spec(name)) for name in ('six', 'pydantic', 'ot')])"
    assert "[True, False, False]" == run(environment, find)
    assert platform.python_version() == run(environment, "import platform; print(platform.python_version())")
    assert SIX[MAIN] == environment.main.read_bytes()
    assert any("six" in line for line in lines)


async def test_a_complete_environment_is_taken_as_it_is_without_uv_or_network(
    environments: PackEnvironments, state: Path
) -> None:
    first = await prepare(environments, SIX)
    assert first == await prepare(PackEnvironments(state, NO_UV), SIX)


async def test_an_environment_that_has_vanished_is_made_again_with_the_same_versions(
    environments: PackEnvironments,
) -> None:
    first = await prepare(environments, SIX)
    lock = first.main.with_name(f"{MAIN}.lock")
    before = lock.stat().st_mtime_ns
    shutil.rmtree(first.python.parent.parent)
    assert first == await prepare(environments, SIX)
    assert "six" == run(first, "import six; print(six.__name__)")
    assert before == lock.stat().st_mtime_ns


async def test_other_content_is_another_directory_and_the_old_one_stays(environments: PackEnvironments) -> None:
    first = await prepare(environments, SIX)
    second = await prepare(environments, pack('dependencies = ["six"]', body="x = 2"))
    assert first.directory != second.directory
    assert first.python != second.python
    assert SIX[MAIN] == first.main.read_bytes()


async def test_callers_and_servers_at_the_same_time_install_once(
    environments: PackEnvironments, state: Path, server_environ: dict[str, str]
) -> None:
    lines: list[str] = []
    other = PackEnvironments(state, server_environ)
    made = await asyncio.gather(
        *(prepare(environments, SIX, progress=lines.append) for _ in range(3)),
        *(prepare(other, SIX, progress=lines.append) for _ in range(3)),
    )
    assert 1 == len(set(made))
    assert 3 == sum(line.startswith("Creating script environment") for line in lines)


async def test_a_caller_that_gives_up_does_not_stop_the_others(environments: PackEnvironments) -> None:
    async with asyncio.timeout(100):
        hasty = asyncio.create_task(prepare(environments, SIX))
        patient = asyncio.create_task(prepare(environments, SIX))
        await asyncio.sleep(0)
        hasty.cancel()
        assert (await patient).python.exists()
        assert hasty.cancelled()


async def test_versions_that_came_with_the_pack_are_used_and_must_fit(environments: PackEnvironments) -> None:
    made = await prepare(environments, pack('dependencies = ["six==1.16.0"]'))
    lock = made.main.with_name(f"{MAIN}.lock").read_bytes()
    fitting = {**pack('dependencies = ["six==1.16.0"]'), f"{MAIN}.lock": lock}
    assert "1.16.0" == run(await prepare(environments, fitting), "import six; print(six.__version__)")
    assert "'uv sync' failed" in await failure(environments, {**SIX, f"{MAIN}.lock": lock})


async def test_half_a_lock_that_a_killed_uv_left_is_not_used(environments: PackEnvironments, state: Path) -> None:
    directory = PackDirectory(state / "packs", SIX, MAIN)
    directory.write()
    directory.script_lock.write_text("version = ")
    assert (await prepare(environments, SIX)).python.exists()


async def test_settings_of_uv_among_the_files_do_not_choose_the_index(environments: PackEnvironments) -> None:
    chosen = b'index-url = "http://127.0.0.1:9/simple"'
    files = {**SIX, "uv.toml": chosen, "pyproject.toml": b"[tool.uv]\n" + chosen}
    assert (await prepare(environments, files)).python.exists()


# ---------------------------------------------------------------- failures


async def test_a_conflict_is_told_in_the_resolvers_words(environments: PackEnvironments) -> None:
    text = await failure(environments, pack('dependencies = ["six==1.15.0", "six==1.16.0"]'))
    assert "pack 'demo' cannot be loaded: 'uv lock' failed (exit code 1)" in text
    assert "six==1.15.0 and six==1.16.0" in text


async def test_a_python_that_nobody_has_is_told(environments: PackEnvironments) -> None:
    assert ">=3.99" in await failure(environments, pack('requires-python = ">=3.99"', 'dependencies = ["six"]'))


async def test_an_index_that_never_answers_costs_the_budget_and_leaves_no_process(
    state: Path, server_environ: dict[str, str], tmp_path: Path
) -> None:
    with silent_index() as (url, server):
        mark = fresh_environ()[NAME]
        chosen = {"UV_DEFAULT_INDEX": url, "UV_CACHE_DIR": str(tmp_path / "cache"), NAME: mark}
        begun = time.monotonic()
        text = await failure(PackEnvironments(state, server_environ | chosen), SIX, budget=2)
        assert 2 <= time.monotonic() - begun
        assert "its dependencies were not installed within 2 s" in text
        server.accept()[0].close()  # it raises when uv never came
        assert within(PATIENCE, lambda: not marked({NAME: mark}))


async def test_logins_of_an_index_are_not_in_the_error(state: Path, server_environ: dict[str, str]) -> None:
    with silent_index() as (url, server):
        server.close()
        chosen = {"UV_DEFAULT_INDEX": url, "UV_HTTP_RETRIES": "0", "UV_NO_CACHE": "1"}
        text = await failure(PackEnvironments(state, server_environ | chosen), SIX)
    assert "'uv lock' failed" in text
    assert "canary-5e1d" not in text
    assert 2200 > len(text)


async def test_uv_sees_the_environment_of_whoever_needs_the_pack(
    environments: PackEnvironments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uv", None)
    assert "pip install uv" in await failure(environments, SIX, environ=NO_UV)


async def test_without_uv_the_error_says_how_to_get_it(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uv", None)
    text = await failure(PackEnvironments(state, NO_UV), SIX)
    assert "pack 'demo'" in text
    assert "pip install uv" in text


async def test_uv_that_cannot_be_executed_is_told(state: Path, tmp_path: Path) -> None:
    fake = tmp_path / "uv"
    fake.write_text("#!/no/such/interpreter\n")
    fake.chmod(0o700)
    assert "uv cannot be started" in await failure(PackEnvironments(state, {"PATH": str(tmp_path)}), SIX)


async def test_a_uv_that_names_another_interpreter_is_not_believed(state: Path, tmp_path: Path) -> None:
    fake = tmp_path / "uv"
    fake.write_text(f"#!/bin/sh\necho {sys.executable}\n")
    fake.chmod(0o700)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert "not the environment of this pack" in await failure(PackEnvironments(state, environ), SIX)


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (pack("dependencies = ["), "not valid TOML"),
        (pack('dependencies = ["six @ https://files.example/six.whl"]'), "which is not allowed"),
        ({MAIN: b"\xff"}, "can't decode byte 0xff"),
        ({"other.py": b""}, f"'{MAIN}' is not among its files"),
        ({MAIN: b"", "../other.py": b""}, "'../other.py' does not stay"),
        ({MAIN: b"", "/other.py": b""}, "'/other.py' does not stay"),
        ({MAIN: b"", "a\\..\\b": b""}, "does not stay"),
        ({MAIN: b"", "": b""}, "'' does not stay"),
        ({MAIN: b"", ".ready.json": b""}, "is reserved"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_files_that_cannot_be_a_pack_are_refused(
    environments: PackEnvironments, tmp_path: Path, files: dict[str, bytes], problem: str
) -> None:
    assert problem in await failure(environments, files)
    assert [] == os.listdir(tmp_path)  # noqa: PTH208 - names are all that is wanted


async def test_a_state_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written" in await failure(PackEnvironments(tmp_path / "file", NO_UV), {MAIN: b""})


async def test_closing_stops_what_is_under_way(state: Path, server_environ: dict[str, str], tmp_path: Path) -> None:
    with silent_index() as (url, server):
        mark = fresh_environ()[NAME]
        chosen = {"UV_DEFAULT_INDEX": url, "UV_CACHE_DIR": str(tmp_path / "cache"), NAME: mark}
        environments = PackEnvironments(state, server_environ | chosen)
        waiting = asyncio.create_task(prepare(environments, SIX))
        server.setblocking(False)
        with anyio.fail_after(PATIENCE):
            connection, _ = await asyncio.get_running_loop().sock_accept(server)
            await environments.aclose()
        connection.close()
        assert [] == marked({NAME: mark})
        with pytest.raises(asyncio.CancelledError):
            await waiting


# ---------------------------------------------------------------- without dependencies


async def test_a_pack_without_a_block_runs_on_the_bare_interpreter(state: Path) -> None:
    environment = await prepare(PackEnvironments(state, NO_UV), {MAIN: b"x = 1"})
    find = "import importlib.util as u, json; print([bool(u.find_spec(name)) for name in ('pydantic', 'pip', 'ot')])"
    assert "[False, False, False]" == run(environment, find)
    assert platform.python_version() == run(environment, "import platform; print(platform.python_version())")


async def test_files_are_private_and_restored_when_someone_has_changed_them(state: Path) -> None:
    files = {MAIN: b"import inner.part", "inner/part.py": b"x = 1"}
    environments = PackEnvironments(state, NO_UV)
    environment = await prepare(environments, files)
    part = environment.directory / "inner" / "part.py"
    directories = (state / "packs", environment.directory, part.parent)
    assert {0o700} == {path.stat().st_mode & 0o777 for path in directories}
    assert {0o600} == {path.stat().st_mode & 0o777 for path in (environment.main, part)}
    part.write_bytes(b"x = 2")
    assert environment == await prepare(environments, files)
    assert b"x = 1" == part.read_bytes()
    assert {environment.directory.name, f"{environment.directory.name}.lock"} == {
        path.name for path in (state / "packs").iterdir()
    }


# ---------------------------------------------------------------- environment variables


async def test_a_worker_sees_no_secret_of_the_server_and_nothing_of_uv(server_environ: dict[str, str]) -> None:
    server_environ |= {
        "UV_INDEX_URL": "https://user:canary-1f6b@index.example",
        "LC_ALL": "C.UTF-8",
        "https_proxy": "p",
    }
    process = await GuardedProcess.start(["env"], env=worker_environ(server_environ), cwd=Path("/"))
    with anyio.fail_after(PATIENCE):
        seen = (await process.stdout.read()).decode()
        await process.wait()
    assert "canary-1f6b" not in seen
    assert "UV_" not in seen
    assert {"LC_ALL=C.UTF-8", "https_proxy=p", f"HOME={server_environ['HOME']}"} <= set(seen.splitlines())


def test_uv_sees_its_own_settings_and_no_secret(server_environ: dict[str, str]) -> None:
    seen = uv_environ(server_environ | {"UV_INDEX_URL": "https://index.example"})
    assert "https://index.example" == seen["UV_INDEX_URL"]
    assert "ANTHROPIC_API_KEY" not in seen


@given(st.dictionaries(st.text(), st.text()))
def test_nothing_is_added_and_nothing_changed(environ: dict[str, str]) -> None:
    assert worker_environ(environ).items() <= uv_environ(environ).items() <= environ.items()
    assert worker_environ(environ) == worker_environ(worker_environ(environ))


def test_uv_is_taken_from_the_path_first_and_else_from_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(find_uv_bin=lambda: "/package/bin/uv")
    monkeypatch.setitem(sys.modules, "uv", module)
    assert importlib.import_module("uv") is module
    assert shutil.which("uv") == find_uv(os.environ)
    assert "/package/bin/uv" == find_uv(NO_UV)
