"""Environments of packs: installs that fail, and lists of packages with hashes."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles

import anyio
import pytest

from faults.watched import start_wire
from mcp_wire import WireServer
from ot.errors import ToolUnavailable
from ot.runtime.run_events import Progress, RunEvent
from ot.workers.pack_environment import COMPLETE, PackEnvironment, PackEnvironments
from ot.workspace import Workspace
from run_app import error_of, paths_in, value_of
from workers.corpus_faults import Fault, fault
from workers.door import source_of
from workers.process_watch import below_this, command
from workers.watched_workers import LONG_CONFIG, ONETOOL, WorkerPlace, write_pack

pytestmark = pytest.mark.anyio

NEEDY = '# /// script\n# dependencies = ["{0}"]\n# ///\ndef f() -> str:\n    """Work."""\n    return "done"\n'
PING_SECONDS = 0.05


@pytest.fixture
def silent_index() -> Iterator[socket.socket]:
    """An index that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def address(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/simple"


def _late_ping(wire: WireServer) -> float:
    return quantiles([wire.ping() for _ in range(100)], n=100)[-1]


@fault("W15", repetitions=5)
def test_an_index_that_never_answers_costs_only_its_own_pack_its_own_budget(
    tmp_path: Path, silent_index: socket.socket, fault: Fault
) -> None:
    packs = {"needy": NEEDY.format("no-such-package-of-ours"), "calm": source_of("calm")}
    place = WorkerPlace.furnish(tmp_path, LONG_CONFIG + "workers: {install_seconds: 10}\n", packs)
    environment = place.environment() | {"UV_DEFAULT_INDEX": address(silent_index)}
    with WireServer.start(ONETOOL, cwd=place.cwd, env=environment) as wire:
        wire.run("calm.echo(nonce='x')")
        control = max(wire.ping() for _ in range(100))
        number = wire.send_run("needy.f()", progress_token="install")
        silent_index.settimeout(30)
        connection, _ = silent_index.accept()
        late = _late_ping(wire)
        for _ in range(2):  # what a busy machine adds is not there each time
            late = late if late <= control + PING_SECONDS else min(late, _late_ping(wire))
        assert [str(n) for n in range(20)] == [wire.run(f"calm.echo(nonce='{n}')").text for n in range(20)]
        assert number not in wire.answers
        reply = wire.wait(number)
        connection.close()
        assert reply.is_error and "not installed within 10 s" in reply.text and "needy" in reply.text
        assert late <= control + PING_SECONDS
        assert not [pid for pid in wire.children() if "uv" in command(pid).split(" ")[0]]
        assert [] == wire.stdout_junk


@fault("W16")
async def test_without_uv_a_pack_is_unavailable_for_a_reason_and_health_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    paths = paths_in(tmp_path, {})
    write_pack(paths.global_dir, "needy", NEEDY.format("six"))
    write_pack(paths.global_dir, "calm", source_of("calm"))
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setitem(sys.modules, "uv", None)
    app = Workspace.alone(paths)
    try:
        error = error_of(await app.run("needy.f()"))
        assert "needy" in error and "pip install uv" in error
        health = value_of(await app.run("ot.health()"))
        assert "needy" in health and "unavailable" in health and "uv" in health
        assert "x" == value_of(await app.run("calm.echo(nonce='x')"))
    finally:
        await app.aclose()


@fault("W17")
async def test_settings_of_uv_and_certificates_reach_uv_and_only_the_latter_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent_index: socket.socket, fault: Fault
) -> None:
    certificates = tmp_path / "ca.pem"
    certificates.write_text("")
    monkeypatch.setenv("UV_INDEX_URL", address(silent_index))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificates))
    monkeypatch.setenv("MY_TOKEN", "canary-77aa")
    paths = paths_in(tmp_path, {"workers": {"install_seconds": 5}})
    write_pack(paths.global_dir, "needy", NEEDY.format("no-such-package-of-ours"))
    write_pack(paths.global_dir, "calm", source_of("calm"))
    app = Workspace.alone(paths)
    try:
        environ = value_of(await app.run("calm.environ()"))
        assert str(certificates) in environ and "PATH" in environ
        assert "UV_" not in environ and "canary-77aa" not in environ and "PYTHONPATH" not in environ
        call = asyncio.create_task(app.run("needy.f()"))
        silent_index.settimeout(30)
        with anyio.fail_after(30):
            connection, _ = await asyncio.to_thread(silent_index.accept)
            connection.close()
            await call
    finally:
        await app.aclose()


@fault("W18")
async def test_a_conflict_is_told_in_the_resolvers_words_and_asked_for_once(tmp_path: Path, fault: Fault) -> None:
    paths = paths_in(tmp_path, {})
    write_pack(paths.global_dir, "torn", NEEDY.format('six==1.16.0", "six==1.17.0'))
    app = Workspace.alone(paths)
    try:
        await app.start()
        before = below_this()
        calls = [asyncio.create_task(app.run("torn.f()")) for _ in range(8)]
        most, seen = 0, set[int]()
        with anyio.fail_after(60):
            while not all(call.done() for call in calls):
                running = {pid for pid in below_this() - before if "/uv" in command(pid).split(" ")[0]}
                most, seen = max(most, len(running)), seen | running
                await asyncio.sleep(0.01)
        errors = [error_of(call.result()) for call in calls]
        assert all("1.16.0" in error and "1.17.0" in error for error in errors)
        assert most <= 1
        assert len(seen) < 3
    finally:
        await app.aclose()


async def test_progress_of_an_install_reaches_whoever_waits_for_it(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, {})
    # A header of its own content, so that it has to be installed now.
    write_pack(paths.global_dir, "needy", NEEDY.format("six") + f"# {tmp_path}\n")
    told: list[str] = []

    def tell(event: RunEvent) -> None:
        if isinstance(event, Progress):
            told.append(event.message)

    app = Workspace.alone(paths)
    try:
        reply = await app.run("needy.f()", tell=tell)
        assert "done" == value_of(reply)
        assert any("needy" in message for message in told)
    finally:
        await app.aclose()


def test_the_command_line_server_has_the_packs_too(tmp_path: Path) -> None:
    place = WorkerPlace.furnish(tmp_path, LONG_CONFIG)
    with start_wire(place, ONETOOL) as wire:
        assert "3" == wire.run("calm.add(first=2)").text
        number = wire.send_run("calm.steps(count=3)", progress_token="p")
        assert "3" == wire.wait(number).text
        told = [
            note["params"].get("message") for note in wire.notifications if note["method"] == "notifications/progress"
        ]
        assert any("step" in str(message) for message in told)


UV = """#!/bin/sh
echo "$*" >> "{directory}/asked"
case "$1" in
  cache) echo "{directory}/cache" ;;
  venv) for word in "$@"; do case "$word" in */onetool-environments/*) place=$word ;; esac; done
        mkdir -p "$place/bin" && ln -sf "{python}" "$place/bin/python" ;;
  pip) echo "Downloading https://me:canary-77f1@packages.example/six" >&2; test ! -e "{directory}/offline" ;;
esac
"""
LOCK = f"six==1.17.0 --hash=sha256:{'0' * 64}\n".encode()


class Uv:
    """A uv in *directory* that installs nothing, and notes what it was asked."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "bin").mkdir()
        program = directory / "bin" / "uv"
        program.write_text(UV.format(directory=directory, python=sys.executable))
        program.chmod(0o700)
        self.environments = PackEnvironments(directory / "state", {"PATH": f"{program.parent}:/usr/bin:/bin"})

    async def prepare(self, code: str = "x = 1", said: list[str] | None = None) -> PackEnvironment:
        main = f'# /// script\n# dependencies = ["six"]\n# ///\n{code}\n'.encode()
        files = {"demo_tools.py": main, "requirements.lock": LOCK}
        with anyio.fail_after(60):
            told = None if said is None else said.append
            return await self.environments.prepare("demo", files, "demo_tools.py", progress=told)

    def asked(self, command: str) -> list[str]:
        lines = (self.directory / "asked").read_text().splitlines()
        return [line for line in lines if line.startswith(f"{command} ")]


@pytest.fixture
def uv(tmp_path: Path) -> Uv:
    return Uv(tmp_path)


async def test_packs_with_the_same_packages_share_an_environment_that_is_made_once(uv: Uv) -> None:
    one, other = await asyncio.gather(uv.prepare("x = 1"), uv.prepare("x = 2"))
    assert one.python == other.python and one.main != other.main
    assert (len(uv.asked("venv")), len(uv.asked("pip"))) == (1, 1)
    assert "--require-hashes" in uv.asked("pip")[0]


async def test_an_environment_that_was_not_completed_is_made_again_from_nothing(uv: Uv) -> None:
    (uv.directory / "offline").touch()
    with pytest.raises(ToolUnavailable, match="needs the network once"):
        await uv.prepare()
    (uv.directory / "offline").unlink()
    python = (await uv.prepare()).python
    assert (python.parent.parent / COMPLETE).exists()
    assert (len(uv.asked("venv")), len(uv.asked("pip"))) == (2, 2)
    assert all(" --clear " in line for line in uv.asked("venv"))


async def test_another_python_has_another_environment(uv: Uv, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await uv.prepare("x = 1")
    monkeypatch.setattr(sys, "version", f"{sys.version} of another build")
    assert (await uv.prepare("x = 2")).python != before.python


async def test_logins_of_an_index_are_not_in_what_is_told_meanwhile(uv: Uv) -> None:
    said: list[str] = []
    await uv.prepare(said=said)
    assert "Downloading https://***@packages.example/six" in said
