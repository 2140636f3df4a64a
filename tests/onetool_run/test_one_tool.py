"""The library: programs run in the process of whoever imports it, as a client's would."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

import onetool_run
from onetool_run import ConfigError, OneTool, OneToolError
from pace import PATIENCE
from run_app import BUNDLED

pytestmark = pytest.mark.anyio


class Shop:
    """Functions of the program that embeds OneTool, as a pack."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.cancelled = asyncio.Event()

    def price(self, *, name: str) -> dict[str, Any]:
        """Return what something costs."""
        return {"name": name, "price": len(name)}

    async def wait(self) -> None:
        """Wait until the call is cancelled."""
        self.waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    def offered(self) -> dict[str, list[Any]]:
        """Return them as OneTool takes them."""
        return {"shop": [self.price, self.wait]}


def portable(directory: Path, **options: Any) -> OneTool:
    """Return one in *directory*, with settings of its own, whose engine starts at once."""
    cwd = directory / "work"
    cwd.mkdir(parents=True, exist_ok=True)
    options.setdefault("engine", "portable")
    return OneTool(cwd, config_dir=directory / "user", **options)


async def before_long(event: asyncio.Event) -> None:
    """Return when *event* is set."""
    async with asyncio.timeout(PATIENCE):
        await event.wait()


# ---------------------------------------------------------------- replies


async def test_a_reply_has_the_value_as_data_and_as_text(tmp_path: Path) -> None:
    async with portable(tmp_path, packs=Shop().offered()) as ot:
        reply = await ot.run("print('two')\n[shop.price(name=n) for n in ('tea', 'milk')]")
    assert reply.value == [{"name": "tea", "price": 3}, {"name": "milk", "price": 4}]
    assert reply.text == 'two\n[{"name":"tea","price":3},{"name":"milk","price":4}]'
    assert (reply.is_error, reply.error, reply.has_value, reply.calls) == (False, "", True, 2)
    assert (reply.engine, reply.tolerated, reply.blocks, reply.handles) == ("portable", (), (), ())
    assert reply.run == reply.meta["run"] and reply.seconds > 0


async def test_a_program_that_fails_has_a_reply_and_raises_nothing(tmp_path: Path) -> None:
    async with portable(tmp_path) as ot:
        reply = await ot.run("1/0")
    assert (reply.is_error, reply.error, reply.has_value, reply.value) == (True, "ProgramFailed", False, None)
    assert reply.text.startswith("ZeroDivisionError")


async def test_none_is_a_value_and_no_value_is_none(tmp_path: Path) -> None:
    async with portable(tmp_path) as ot:
        some, none = await ot.run("None"), await ot.run("import math")
    assert (some.value, some.has_value) == (None, True)
    assert (none.value, none.has_value) == (None, False)


async def test_a_large_value_is_whole_while_its_text_is_stored(tmp_path: Path) -> None:
    async with portable(tmp_path, config={"output": {"max_inline_size": 1000}}) as ot:
        reply = await ot.run("['word'] * 2000")
        assert reply.value == ["word"] * 2000
        assert json.loads(reply.text)["handle"] == reply.handles[0]
        assert json.loads(await ot.stored_text(reply.handles[0])) == ["word"] * 2000
        with pytest.raises(OneToolError):
            await ot.stored_text("x" * 22)


async def test_what_was_tolerated_is_told(tmp_path: Path) -> None:
    async with portable(tmp_path) as ot:
        reply = await ot.run("math.sqrt(9)")
    assert (reply.value, reply.tolerated) == (3.0, ("missing-import",))


async def test_secrets_are_in_neither_text_nor_value(tmp_path: Path) -> None:
    secrets = tmp_path / "user" / "secrets.yaml"
    secrets.parent.mkdir()
    secrets.write_text("TOKEN: abcdef123456\n")
    secrets.chmod(0o600)
    printed: list[str] = []

    def observe(event: onetool_run.RunEvent) -> None:
        if isinstance(event, onetool_run.Printed):
            printed.append(event.text)

    async with portable(tmp_path, config={"tools": {"x": {"t": "${TOKEN}"}}}, observe=observe) as ot:
        reply = await ot.run("t = 'abcdef' + '123456'\nprint(t)\n{t: [t, (t, 1)]}")
    hidden = "[secret:TOKEN]"
    assert reply.value == {hidden: [hidden, (hidden, 1)]}
    assert "abcdef123456" not in reply.text + "".join(printed)
    assert hidden in "".join(printed)


async def test_a_format_is_for_programs_that_ask_for_none(tmp_path: Path) -> None:
    async with portable(tmp_path) as ot:
        assert (await ot.run("{'a': [1]}", format="yml")).text == "{a: [1]}"
        assert (await ot.run("__format__ = 'json'\n{'a': [1]}", format="yml")).text == '{"a":[1]}'


async def test_runs_of_one_session_share_variables(tmp_path: Path) -> None:
    async with portable(tmp_path) as ot:
        await ot.run("x = 20", session="s")
        assert (await ot.run("x + 1", session="s")).value == 21
        assert (await ot.run("x + 1")).is_error


# ---------------------------------------------------------------- what it is opened with


async def test_settings_are_laid_over_those_of_the_file(tmp_path: Path) -> None:
    user = tmp_path / "user"
    user.mkdir()
    (user / "onetool.yaml").write_text("aliases: {v: ot.version}\nlimits: {calls: 50, command_bytes: 9}\n")
    async with portable(tmp_path, config={"limits": {"calls": 1}}) as ot:
        assert "limits.command_bytes" in (await ot.run("print('abcdef')")).text
        assert "limits.calls" in (await ot.run("v()\nv()")).text


async def test_settings_with_an_error_say_where_they_were_given(tmp_path: Path) -> None:
    for wrong, words in (({"limits": {"cals": 1}}, "did you mean 'calls'"), ({"include": ["x"]}, "a file")):
        with pytest.raises(ConfigError, match=r"OneTool\(config=...\): ") as raised:
            async with portable(tmp_path, config=wrong):
                pass
        assert words in str(raised.value)


async def test_a_project_is_used_only_when_it_is_trusted(tmp_path: Path) -> None:
    project = tmp_path / "work" / ".onetool"
    project.mkdir(parents=True)
    (project / "onetool.yaml").write_text("aliases: {v: ot.version}\n")
    async with portable(tmp_path) as ot:
        assert "is not trusted" in (await ot.run("v()")).text
    async with portable(tmp_path, trust_project=True) as ot:
        assert not (await ot.run("v()")).is_error


async def test_a_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cwd is not a directory: .*nowhere"):
        async with OneTool(tmp_path / "nowhere"):
            pass


async def test_a_pack_needs_a_name_that_programs_can_write(tmp_path: Path) -> None:
    for name in ("my-pack", "ot", "print", "class", ""):
        with pytest.raises(ValueError, match="cannot be a pack's name"):
            portable(tmp_path, packs={name: []})


async def test_run_needs_an_open_onetool(tmp_path: Path) -> None:
    ot = portable(tmp_path)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="async with OneTool"):
            await ot.run("1")
        async with ot:
            assert (await ot.run("1")).value == 1
            with pytest.raises(RuntimeError, match="open already"):
                await ot.__aenter__()


async def test_two_in_one_process_know_nothing_of_each_other(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for directory in (one, other):
        (directory / "work").mkdir(parents=True)
        (directory / "work" / "note.txt").write_text(directory.name)
    given = {name: {"snippets": {"me": {"body": f"'{name}'"}}} for name in ("one", "other")}
    async with portable(one, config=given["one"], packs=Shop().offered()) as first:
        async with portable(other, config=given["other"]) as second:
            program = "[file.read(path='note.txt'), ot.help(query='$me'), 'shop' in ot.packs(info='list')]"
            replies = await asyncio.gather(*(ot.run(program) for ot in (first, second) for _ in range(5)))
            await first.run("x = 1", session="s")
            assert (await second.run("x", session="s")).is_error
        found = [(text, f"'{text}'" in page, shop) for text, page, shop in (reply.value for reply in replies)]
        assert found == [("one", True, True)] * 5 + [("other", True, False)] * 5
        assert (await first.run("x", session="s")).value == 1  # the other one's end did not end it


# ---------------------------------------------------------------- ends


def list_new(before: set[psutil.Process]) -> set[psutil.Process]:
    """Return the processes below this one that are new; of those that were there, others' may end at any time."""
    return set(psutil.Process().children(recursive=True)) - before


@pytest.mark.parametrize("engine", ["portable", "auto"])
async def test_closing_leaves_no_process_behind(tmp_path: Path, engine: str) -> None:
    before = set(psutil.Process().children(recursive=True))
    async with portable(tmp_path, engine=engine) as ot:
        await ot.run("1")
        assert list_new(before)
    assert not list_new(before)


async def test_a_block_that_is_cancelled_leaves_no_process_behind(tmp_path: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    with anyio.CancelScope() as scope:
        async with portable(tmp_path) as ot:
            await ot.run("1")
            scope.cancel()
            await ot.run("while True: pass")
    assert not list_new(before)


async def test_cancelling_a_run_cancels_the_program_and_its_calls(tmp_path: Path) -> None:
    shop = Shop()
    async with portable(tmp_path, packs=shop.offered()) as ot:
        running = asyncio.ensure_future(ot.run("shop.wait()"))
        await before_long(shop.waiting)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await before_long(shop.cancelled)
        assert (await ot.run("2")).value == 2


async def test_closing_ends_the_programs_that_still_run(tmp_path: Path) -> None:
    shop = Shop()
    async with portable(tmp_path, packs=shop.offered()) as ot:
        running = asyncio.ensure_future(ot.run("shop.wait()"))
        await before_long(shop.waiting)
    with pytest.raises(RuntimeError, match="closed while the program ran"):
        await running
    assert shop.cancelled.is_set()


# ---------------------------------------------------------------- what a model is told


async def test_one_call_is_answered_as_a_program_of_one_call(tmp_path: Path) -> None:
    async with portable(tmp_path, packs=Shop().offered()) as ot:
        assert (await ot.call("shop.price", name="tea")).value == {"name": "tea", "price": 3}
        assert (await ot.call("shop.prise", name="tea")).error == "UnknownTool"


async def test_tools_are_listed_and_found_by_words(tmp_path: Path) -> None:
    async with portable(tmp_path, packs=Shop().offered()) as ot:
        listed = {tool.name: tool for tool in await ot.tools()}
        assert listed["shop.price"].signature == "shop.price(name: str) -> dict[str, Any]"
        assert "file.read" in listed
        best = (await ot.search("what does something cost", most=1))[0]
        assert (best.name, best.description) == ("shop.price", "Return what something costs.")
        named = {line.partition(":")[0] for line in ot.description.splitlines()}
        assert named >= {*BUNDLED, "shop"} - {"ot"}


# ---------------------------------------------------------------- as a package


def test_every_public_name_is_there_and_importing_it_is_quiet() -> None:
    assert all(hasattr(onetool_run, name) for name in onetool_run.__all__)
    code = "import sys, onetool_run, logging; logging.getLogger('ot').warning('x'); print('fastmcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("False\n", "")
