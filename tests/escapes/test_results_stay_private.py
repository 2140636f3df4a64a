"""Stored results are reached by handle, by their owner, and in the server's own directory, or not at all."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from bed import write
from escapes.house import House
from ot.errors import ResultError
from ot.workspace import Workspace

pytestmark = pytest.mark.anyio

SECRET = "canary-outside"
LARGE = "'\\n'.join('entry ' + str(n) for n in range(1000))"


@asynccontextmanager
async def keeping(directory: Path) -> AsyncGenerator[tuple[House, Workspace, str]]:
    """Yield an application that has stored one result, and the result's handle."""
    house = House.make(directory)
    house.user_file("output: {max_inline_size: 2000}\n")
    write(house.outside / "secret.txt", SECRET)
    app = house.app()
    reply = await app.run(LARGE)
    yield house, app, json.loads(reply.texts[0])["handle"]
    await app.aclose()


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[tuple[House, Workspace, str]]:
    """An application of one test, which may change its files."""
    async with keeping(tmp_path) as kept:
        yield kept


@pytest.fixture(scope="module")
async def asked(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[House, Workspace, str]]:
    """An application of all tests that only ask it."""
    async with keeping(tmp_path_factory.mktemp("asked")) as asked:
        yield asked


async def page(app: Workspace, handle: str, **query: object) -> str:
    """Return what ot.result and the resource say for a handle, good or bad."""
    arguments = "".join(f", {name}={value!r}" for name, value in query.items())
    reply = await app.run(f"ot.result(handle={handle!r}{arguments})")
    try:
        resource = app.stored_text(handle, app.own_caller.principal)
    except ResultError as error:
        resource = str(error)
    return "\n".join([*reply.texts, resource])


NASTY = [
    "../../etc/passwd",
    "/etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "../outside/secret.txt",
    "{outside}/secret.txt",
    "{outside}/secret",
    "result-",
    "",
    ".",
    "..",
    "~/.onetool/secrets.yaml",
    "*",
    "{handle}\x00",
    "{handle}/../{handle}",
    "{handle}.txt",
    "{handle}\n",
    "A" * 22,
    "A" * 100_000,
    "\u202e{handle}",
]


@pytest.mark.parametrize("handle", NASTY, ids=lambda text: repr(text[:30]))
async def test_a_handle_is_a_name_and_never_a_path(asked: tuple[House, Workspace, str], handle: str) -> None:
    house, app, good = asked
    said = await page(app, handle.replace("{outside}", str(house.outside)).replace("{handle}", good))
    assert SECRET not in said
    assert "root:" not in said
    assert "entry 1" not in said
    assert "entry 1" in await page(app, good)


@pytest.mark.parametrize("value", ["../../etc/passwd", "/etc/passwd", "\x00", "{outside}/secret.txt", "*" * 10_000])
@pytest.mark.parametrize(
    "call",
    [
        "ot.help(query={0!r})",
        "ot.help(query={0!r}, info={0!r})",
        "ot.tools(pattern={0!r})",
        "ot.packs(pattern={0!r})",
        "ot.packs(info={0!r})",
        "ot.result(handle={0!r}, search={0!r})",
        "proj.path(name={0!r})",
        "getattr(proj, {0!r})",
        "getattr(ot, {0!r})()",
    ],
)
async def test_no_function_of_ot_takes_what_it_is_given_for_a_path(
    asked: tuple[House, Workspace, str], call: str, value: str
) -> None:
    house, app, _ = asked
    reply = await app.run(call.format(value.replace("{outside}", str(house.outside))))
    assert SECRET not in str(reply)
    assert "root:" not in str(reply)
    assert len(str(reply)) < 20_000


@pytest.mark.parametrize("suffix", [".txt", ".idx", ".meta.json"])
async def test_a_result_file_that_turned_into_a_link_is_not_followed(
    kept: tuple[House, Workspace, str], suffix: str
) -> None:
    house, app, handle = kept
    file = house.user / "tmp" / f"result-{handle}{suffix}"
    target = write(house.outside / "copy", file.read_bytes().decode("latin-1"))
    file.unlink()
    file.symlink_to(target)
    assert (await app.run(f"ot.result(handle={handle!r})")).is_error
    file.unlink()
    file.symlink_to(house.outside / "secret.txt")
    assert SECRET not in await page(app, handle)


async def test_a_result_belongs_to_its_owner_alone(kept: tuple[House, Workspace, str]) -> None:
    house, app, handle = kept
    assert "entry 1" in await page(app, handle)
    meta = house.user / "tmp" / f"result-{handle}.meta.json"
    write(meta, json.dumps(json.loads(meta.read_text()) | {"owner": "uid:12345"}))
    assert "entry 1" not in await page(app, handle)


async def test_a_forged_result_is_not_read(kept: tuple[House, Workspace, str]) -> None:
    house, app, handle = kept
    store = house.user / "tmp"
    meta = json.loads((store / f"result-{handle}.meta.json").read_text())
    forged = "F" * 22
    write(store / f"result-{forged}.meta.json", json.dumps(meta))
    (store / f"result-{forged}.txt").symlink_to(house.outside / "secret.txt")
    assert SECRET not in await page(app, forged)


async def test_a_store_that_turned_into_a_link_is_neither_written_nor_read(kept: tuple[House, Workspace, str]) -> None:
    house, app, handle = kept
    store = house.user / "tmp"
    store.rename(house.outside / "stolen")
    trap = house.outside / "trap"
    trap.mkdir()
    store.symlink_to(trap)
    reply = await app.run(LARGE)
    assert list(trap.iterdir()) == []
    assert "entry 0" in reply.texts[0]
    assert "truncated" in reply.texts[0]
    store.unlink()
    store.symlink_to(house.outside / "stolen")
    assert "entry 1" not in await page(app, handle)


async def test_a_tool_reads_no_result_that_is_not_its_caller_s(kept: tuple[House, Workspace, str]) -> None:
    house, app, handle = kept
    (house.cwd / "results").symlink_to(house.user / "tmp")
    for path in (f"results/result-{handle}.txt", str(house.user / "tmp" / f"result-{handle}.txt")):
        assert (await app.run(f"file.read(path={path!r})")).is_error
    house.project_file("{}\n", "tmp/result-x.txt")
    assert (await app.run("file.read(path='.onetool/tmp/result-x.txt')")).is_error


def test_a_handle_in_a_resource_s_address_is_no_path_either(tmp_path: Path) -> None:
    house = House.make(tmp_path)
    write(house.outside / "secret.txt", SECRET)
    targets = ["../../etc/passwd", "/etc/passwd", str(house.outside / "secret.txt"), "..", "\x00"]
    with house.stdio() as server:
        for target in targets:
            for uri in (
                f"ot://result/{target}",
                f"ot://result/{quote(target, safe='')}",
                f"ot://tool/{quote(target, safe='')}",
            ):
                reply = server.request("resources/read", {"uri": uri})
                assert reply.error, uri
                assert SECRET.encode() not in reply.raw_line
                assert b"root:x" not in reply.raw_line
        assert server.run("1 + 1").text == "2"
