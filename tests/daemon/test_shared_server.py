"""The shared server in this process: whom it takes, by which header, what it tells of itself, and when it ends."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import json
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ot.config.paths import Paths
from ot.daemon import handshake, server_lock
from ot.daemon.handshake import MAX_BYTES, PREFIX_BYTES, MalformedHeader, body_bytes, read_body
from ot.daemon.server_lock import ServerLock
from ot.daemon.shared_server import SharedServer
from ot.host import Host
from ot.relay.header import COMMAND, CONTROL, MAGIC, Header
from ot.relay.place import Place
from ot.runtime.engines.portable.portable_engine import PortableEngine
from pace import PATIENCE

pytestmark = pytest.mark.anyio

KEY = b"the key"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}},
}


@dataclass
class House:
    """A shared server, and how it is reached."""

    server: SharedServer
    lock: ServerLock
    serving: asyncio.Task[None]
    cwd: Path

    async def connect(self, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection on which *data* was sent."""
        reader, writer = await asyncio.open_unix_connection(self.lock.place.socket)
        writer.write(data)
        return reader, writer

    def header(self, *argv: bytes, key: bytes = KEY, cwd: bytes | None = None, **environ: str) -> bytes:
        """Return the header of a client in the usual directory."""
        given = {**os.environ, **environ}
        encoded = {os.fsencode(name): os.fsencode(value) for name, value in given.items()}
        return Header(key, cwd or os.fsencode(self.cwd), argv or (b"serve", b"--shared"), encoded).pack()

    async def answer(self, data: bytes) -> bytes:
        """Return the first line that comes for *data*, empty if the connection is closed."""
        reader, writer = await self.connect(data)
        try:
            async with asyncio.timeout(PATIENCE):
                return await reader.readline()
        finally:
            writer.close()

    async def ended(self) -> None:
        """Return when the server has ended by itself."""
        async with asyncio.timeout(PATIENCE):
            await self.serving


@asynccontextmanager
async def _house(cwd: Path, *, idle_seconds: float = 600.0) -> AsyncGenerator[House]:
    directory = tempfile.mkdtemp(prefix="ot", dir="/tmp")
    lock = ServerLock.begin(Place(directory, KEY))
    assert lock
    host = Host(Paths.of(cwd, Path.home() / ".onetool"), engine=PortableEngine())
    server = SharedServer(lock, host, idle_seconds=idle_seconds, look_seconds=0.02)
    serving = asyncio.ensure_future(server.serve())
    try:
        yield House(server, lock, serving, cwd)
    finally:
        server.stop(now=True)
        await asyncio.gather(serving, return_exceptions=True)
        await host.aclose()
        shutil.rmtree(directory)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    """A shared server that nobody uses."""
    async with _house(tmp_path) as house:
        yield house


async def _control(house: House, *words: bytes) -> dict[str, Any]:
    reader, writer = await house.connect(house.header(CONTROL, *words, key=b"another"))
    async with asyncio.timeout(PATIENCE):
        assert await reader.readline() == b"+\n"
        said = json.loads(await reader.readline())
    writer.close()
    return said


async def test_a_client_is_welcomed_and_then_spoken_to_in_its_own_protocol(house: House) -> None:
    reader, writer = await house.connect(house.header())
    writer.write(json.dumps(INITIALIZE).encode() + b"\n")
    async with asyncio.timeout(PATIENCE):
        assert await reader.readline() == b"+\n"
        assert json.loads(await reader.readline())["result"]["serverInfo"]["name"] == "onetool"
    [connection] = (await _control(house))["connections"]
    assert (connection["cwd"], connection["client"], connection["runs"]) == (str(house.cwd), "wire", 0)
    writer.close()


async def test_who_is_not_of_this_build_is_refused(house: House) -> None:
    assert await house.answer(house.header(key=b"another")) == b"-the client is of another build or user\n"


async def test_who_has_no_directory_or_an_unknown_option_is_refused(house: House) -> None:
    assert b"directory" in await house.answer(house.header(cwd=b"/no/such/place"))
    assert b"--nonsense" in await house.answer(house.header(b"serve", b"--shared", b"--nonsense"))


async def test_a_directory_that_means_another_for_each_process_is_refused(house: House) -> None:
    (house.cwd / "link").symlink_to("/proc/self")
    for cwd in (b"/proc/self", b"/proc/self/cwd", b"/dev/fd", b".", os.fsencode(house.cwd / "link")):
        assert b"cannot work in" in await house.answer(house.header(cwd=cwd)), cwd
    assert b"cannot work in" in await house.answer(house.header(OT_CWD="/proc/self/cwd"))
    assert (await house.answer(house.header(cwd=b"/proc/1/root"))).startswith(b"-")
    assert await house.answer(house.header()) == b"+\n"


async def test_a_client_with_another_home_is_refused(house: House) -> None:
    assert await house.answer(house.header(HOME="/")) == b"-the client has another HOME than the shared server\n"


WELL_FORMED: dict[str, Any] = {"command": "list", "words": [], "flags": [], "somebody_is_there": False}


@pytest.mark.parametrize(
    "asked",
    [
        b"", b"{", b"[]", b"5", b"null", b"[" * 100_000, b"\xff",
        *(json.dumps({key: value for key, value in WELL_FORMED.items() if key != left_out}).encode()
          for left_out in WELL_FORMED),
        *(json.dumps({**WELL_FORMED, name: value}).encode()
          for name, value in (("command", 5), ("command", ["list"]), ("words", 5), ("words", "list"), ("words", [{}]),
                              ("words", [None]), ("flags", 5), ("flags", {"--tokens": 1}), ("flags", [5]),
                              ("somebody_is_there", "yes"))),
    ],
)  # fmt: skip
async def test_a_typed_command_of_wrong_types_is_refused(
    house: House, asked: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    assert await house.answer(house.header(COMMAND, asked)) == b"-the command is malformed\n"
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(
    ("name", "words"), [("run", []), ("run", ["1", "2"]), ("list", ["a", "b"]), ("show", []), ("nonsense", ["x"] * 9)]
)
async def test_a_typed_command_with_words_that_it_does_not_take_is_answered_with_what_is_wrong(
    house: House, name: str, words: list[str]
) -> None:
    asked = json.dumps({**WELL_FORMED, "command": name, "words": words}).encode()
    reader, writer = await house.connect(house.header(COMMAND, asked))
    async with asyncio.timeout(PATIENCE):
        assert await reader.readline() == b"+\n"
        said = json.loads(await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big")))
    writer.close()
    assert said["answer"]["problem"] == f"the shared server knows no command {name!r} with {len(words)} words"


@pytest.mark.parametrize(
    "said", [b"5", b"{", b"[]", b'{"action": 5}', b'{"action": "cancel", "x": 1}', b'{"cannot": 1}']
)
async def test_what_is_not_an_answer_ends_a_typed_command(
    house: House, said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    asked = json.dumps({**WELL_FORMED, "command": "run", "words": ["while True: pass"]}).encode()
    reader, writer = await house.connect(house.header(COMMAND, asked))
    async with asyncio.timeout(PATIENCE):
        assert await reader.readline() == b"+\n"
        writer.write(len(said).to_bytes(4, "big") + said)
        assert await reader.read() == b""
    writer.close()
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_client_whose_configuration_cannot_be_read_is_refused_and_others_are_not(house: House) -> None:
    config = Path.home() / ".onetool" / "onetool.yaml"
    config.parent.mkdir()
    config.write_text("limits: 7")
    assert (await house.answer(house.header())).startswith(b"-")
    config.unlink()
    assert await house.answer(house.header()) == b"+\n"


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\n\r\n", MAGIC + b"\xff\xff\xff\xff" + b"x" * 100, MAGIC + bytes(4)],
    ids=["another protocol", "without end", "empty"],
)
async def test_what_is_no_header_is_refused_at_once(house: House, data: bytes) -> None:
    assert (await house.answer(data)).startswith(b"-the header is missing or malformed")


@pytest.mark.parametrize("data", [b"", MAGIC, MAGIC + b"\0\0\1\0" + b"x" * 9], ids=["nothing", "half", "not all"])
async def test_who_sends_no_whole_header_is_cut_off(house: House, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "HEADER_SECONDS", 0.05)
    assert (await house.answer(data)).startswith(b"-the header is missing or malformed")


async def test_without_clients_it_ends_after_a_while_and_removes_its_socket(tmp_path: Path) -> None:
    async with _house(tmp_path, idle_seconds=0.1) as house:
        await house.ended()
        assert not os.path.exists(house.lock.place.socket)  # noqa: ASYNC240, PTH110 - one look


async def test_while_there_is_a_client_it_does_not_end(tmp_path: Path) -> None:
    async with _house(tmp_path, idle_seconds=0.1) as house:
        reader, writer = await house.connect(house.header())
        assert await reader.readline() == b"+\n"
        done, _ = await asyncio.wait([house.serving], timeout=0.5)
        assert not done
        assert await house.answer(house.header()) == b"+\n"
        writer.close()
        await house.ended()


async def test_who_connects_while_it_retires_is_served_and_a_successor_may_begin(house: House) -> None:
    reader, writer = await house.connect(b"")
    house.server.retire()
    successor = ServerLock.begin(house.lock.place)
    assert successor
    writer.write(house.header())
    async with asyncio.timeout(PATIENCE):
        assert await reader.readline() == b"+\n"
    writer.close()
    await house.ended()
    assert successor.is_current()
    successor.end()
    successor.listener.close()


async def test_a_server_that_lives_lets_no_second_one_begin(house: House) -> None:
    assert ServerLock.begin(house.lock.place) is None
    assert house.lock.is_current()


def _leave_files(directory: Path, name: str) -> set[Path]:
    files = {directory / f"{name}{ending}" for ending in (".sock", ".life", ".start", ".log")}
    for file in files:
        file.touch()
    return files


def test_a_new_server_removes_what_dead_ones_have_left_and_nothing_of_the_others(tmp_path: Path) -> None:
    begun, directory = ServerLock.begin(Place(str(tmp_path), KEY)), tmp_path
    assert begun
    own = set(directory.iterdir())
    dead = _leave_files(directory, "00000001")
    others = {name: _leave_files(directory, name) for name in ("00000002", "00000003", "00000004")}
    (directory / "00000001.sock.17").touch()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / "killed.ask"))
    (directory / "note.txt").touch()
    with ExitStack() as locks:
        for name, ending in zip(others, (".life", ".start", ".log"), strict=True):
            file = locks.enter_context((directory / f"{name}{ending}").open("rb"))
            fcntl.flock(file, fcntl.LOCK_SH)
        begun.ready()
        left = set(directory.iterdir())
    assert left & dead == set()
    assert left == {*own, *itertools.chain(*others.values()), directory / "note.txt"}
    assert begun.is_current()
    begun.end()
    begun.listener.close()


def test_a_server_whose_file_was_removed_while_it_began_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(str(tmp_path), KEY)
    locked, removals = server_lock._locked, [True, False]

    def lock_late(lock: int, place: Place) -> bool:
        if removals.pop(0):
            os.unlink(place.life)  # noqa: PTH108 - as a server of another key does
        return locked(lock, place)

    monkeypatch.setattr(server_lock, "_locked", lock_late)
    begun = ServerLock.begin(place)
    assert begun
    monkeypatch.undo()
    assert ServerLock.begin(place) is None
    begun.end()
    begun.listener.close()


async def test_when_its_socket_is_taken_away_it_retires(house: House) -> None:
    os.unlink(house.lock.place.socket)  # noqa: PTH108 - at once
    await house.ended()


async def test_it_says_what_it_is_and_ends_when_asked_to(house: House) -> None:
    said = await _control(house)
    assert (said["pid"], said["socket"], said["connections"]) == (os.getpid(), house.lock.place.socket, [])
    assert said["since"] == house.lock.since
    await _control(house, b"stop")
    await house.ended()


async def test_asked_for_what_it_does_not_know_it_refuses(house: House) -> None:
    assert (await house.answer(house.header(CONTROL, b"dance"))).startswith(b"-control takes")
    assert not house.serving.done()


async def test_asked_to_stop_it_takes_nobody_new_and_lets_go_of_clients(house: House) -> None:
    reader, writer = await house.connect(house.header())
    assert await reader.readline() == b"+\n"
    late, late_writer = await house.connect(b"")
    await _control(house, b"stop")
    late_writer.write(house.header())
    async with asyncio.timeout(PATIENCE):
        assert await reader.read() == b""
        assert await late.readline() in (b"?the shared server is ending\n", b"")
    await house.ended()
    writer.close()
    late_writer.close()


HEADER = Header(b"a key\nof lines", b"/w/\xff", (b"serve", b"--packs=a b", b""), {b"A": b"1=2", b"EMPTY": b""})


def test_a_header_is_read_as_it_was_packed() -> None:
    packed = HEADER.pack()
    assert body_bytes(packed[:PREFIX_BYTES]) == len(packed) - PREFIX_BYTES
    read = read_body(packed[PREFIX_BYTES:])
    assert (read.key, read.cwd, read.argv, read.environ) == (HEADER.key, HEADER.cwd, HEADER.argv, HEADER.environ)


@pytest.mark.parametrize(
    "prefix", [b"onetool2" + bytes(4), MAGIC + (MAX_BYTES + 1).to_bytes(4, "big"), b'{"jsonrpc":"2']
)
def test_another_protocol_or_an_endless_header_is_refused_before_it_is_read(prefix: bytes) -> None:
    with pytest.raises(MalformedHeader):
        body_bytes(prefix)


@pytest.mark.parametrize(
    "body", [b"", b"key", b"key\0/cwd", b"key\0/cwd\0many", b"key\0/cwd\x002\0one", b"k\0/\0-1\0x"]
)
def test_a_header_with_missing_fields_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedHeader):
        read_body(body)
