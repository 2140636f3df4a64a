"""Packs are found by their files' names and read without running any of them. When files are looked at again."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ot.errors import ToolUnavailable
from ot.registry.freshness import Freshness
from ot.registry.tool_loader import MAX_FILE_BYTES, ToolLoader, read_pack_file, tools_of_functions
from ot.registry.tool_registry import ToolRegistry

GOOD = '''
"""What the pack does."""

pack = "good"
__all__ = ["search", "later"]

LIMIT = 3


def search(*, query: str, limit: int = LIMIT) -> list[str]:
    """Search.

    Args:
        query: What for.
    """
    return [query] * limit


async def later() -> None:
    """Do it later."""


def not_offered() -> None:
    """Stay inside."""
'''


def write(directory: Path, name: str, source: str | bytes) -> Path:
    file = directory / f"{name}.py"
    file.write_bytes(source if isinstance(source, bytes) else source.encode())
    return file


def read(directory: Path, source: str | bytes, name: str = "good") -> list[str]:
    tools = read_pack_file(write(directory, name, source), pack=name, target=f"packs.{name}")
    return [tool.name for tool in tools]


def test_a_file_is_a_pack_and_its_functions_are_tools(tmp_path: Path) -> None:
    write(tmp_path, "good", GOOD)
    (pack,) = ToolLoader(tmp_path, "packs").packs()
    assert (pack.name, pack.source, pack.origin) == ("good", "local", "packs.good")
    search = pack.tools["search"]
    assert list(pack.tools) == ["search", "later"]
    assert [(p.name, p.annotation, p.default) for p in search.parameters] == [
        ("query", "str", None),
        ("limit", "int", "LIMIT"),
    ]
    assert (search.returns, search.description, search.target) == ("list[str]", "Search.", "packs.good:search")
    assert (search.pack, search.backend) == ("good", "in_process")


def test_files_that_begin_with_an_underscore_are_no_packs(tmp_path: Path) -> None:
    for name in ("_parts", "__init__", "b", "a"):
        write(tmp_path, name, "def f(): ...")
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("def f(): ...")
    assert [pack.name for pack in ToolLoader(tmp_path, "packs").packs()] == ["a", "b"]


def test_without_all_every_public_function_is_a_tool(tmp_path: Path) -> None:
    source = "import os\ndef shown(): ...\ndef _hidden(): ...\nclass C:\n    def method(self): ...\nx = lambda: 1\n"
    assert read(tmp_path, source) == ["shown"]


def test_reading_a_pack_runs_nothing_of_it(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    write(tmp_path, "side", f"open({str(marker)!r}, 'w').close()\nimport no_such_module\ndef f(x=open('/')): ...\n")
    registry = ToolRegistry(ToolLoader(tmp_path, "packs").packs())
    assert registry.tool("side", "f").parameters[0].default == "open('/')"
    assert [tool.full_name for tool in registry.tools()] == ["side.f"]
    assert not marker.exists()


def test_nothing_is_read_before_somebody_asks(tmp_path: Path) -> None:
    file = write(tmp_path, "good", GOOD)
    registry = ToolRegistry(ToolLoader(tmp_path, "packs").packs())
    file.write_text("def other(): ...")
    assert list(registry.pack("good").tools) == ["other"]
    file.write_text(GOOD)
    assert list(registry.pack("good").tools) == ["other"]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def f(:\n", r"good\.py:1: invalid syntax"),
        ("x = 1\n  y = 2\n", r"good\.py:2: unexpected indent"),
        (b"\xff\xfe\x00", "good.py"),
        ("def f(): ...\0", "null bytes"),
        ("__all__ = ['missing']\ndef f(): ...", "__all__ names 'missing'"),
        ("__all__ = ['X']\nX = 1\ndef f(): ...", "__all__ names 'X'"),
        ("__all__ = 'f'\ndef f(): ...", "__all__ must be a list of names"),
        ("__all__ = [1]\ndef f(): ...", "__all__ must be a list of names"),
        ("__all__ = {'f': 1}\ndef f(): ...", "__all__ must be a list of names"),
        ("__all__ = [name for name in ('f',)]\ndef f(): ...", "__all__ must be a list of names"),
        ("__all__ = ['f']\n__all__ += ['g']\ndef f(): ...\ndef g(): ...", "__all__ must be a list of names"),
        ("__all__: list[str] = sorted(['f'])\ndef f(): ...", "__all__ must be a list of names"),
        ("pack = 'other'\ndef f(): ...", "says pack = 'other', its name says 'good'"),
        ("pack = 1\ndef f(): ...", "says pack = 1"),
        ("pack = 'go' + 'od'\ndef f(): ...", "says pack = a computed value, its name says 'good'"),
        (b"#" * (MAX_FILE_BYTES + 1), "larger than 4 MiB"),
    ],
    ids=lambda value: str(value[:25]),
)
def test_a_file_that_is_no_pack_says_why(source: str | bytes, why: str, tmp_path: Path) -> None:
    with pytest.raises(ToolUnavailable, match=why):
        read(tmp_path, source)


@pytest.mark.parametrize(
    "source", ["__all__: list[str] = ['f']\n", "__all__ = ('f',)\n", "__all__ = []\n__all__ = ['f']\n"]
)
def test_all_may_be_written_in_several_ways(source: str, tmp_path: Path) -> None:
    assert read(tmp_path, f"{source}def f(): ...\ndef g(): ...") == ["f"]


@pytest.mark.parametrize("constant", ["X = {[1]: 2}", "X = {[1]}", "X = -'a'", "X = 1 + 'a'", "X = [*a]", "X = f'{a}'"])
def test_constants_that_cannot_be_read_are_passed_over(constant: str, tmp_path: Path) -> None:
    assert read(tmp_path, f"{constant}\ndef f(): ...") == ["f"]


@pytest.mark.parametrize("name", ["my-pack", "class", "1st"])
def test_a_name_that_no_program_could_write_is_no_pack(name: str, tmp_path: Path) -> None:
    with pytest.raises(ToolUnavailable, match="not a Python name"):
        read(tmp_path, "def f(): ...", name)


def test_a_broken_pack_is_reported_and_the_others_work(tmp_path: Path) -> None:
    write(tmp_path, "bad", "def f(:")
    write(tmp_path, "empty", "X = 1")
    write(tmp_path, "gone", "def f(): ...")
    write(tmp_path, "good", GOOD)
    registry = ToolRegistry(ToolLoader(tmp_path, "packs").packs())
    (tmp_path / "gone.py").unlink()
    assert [tool.full_name for tool in registry.tools()] == ["good.later", "good.search"]
    broken = {name: pack.broken for name, pack in registry.packs.items() if pack.broken}
    assert broken["bad"] == "bad.py:1: invalid syntax"
    assert broken["empty"] == "it has no tools"
    assert "gone.py" in broken["gone"]
    with pytest.raises(ToolUnavailable, match=r"pack 'bad' cannot be loaded: bad\.py:1"):
        registry.tool("bad", "f")


def test_a_pack_marks_the_tools_that_destroy_and_those_that_only_read(tmp_path: Path) -> None:
    marks = "__ot_destructive__ = ['wipe']\n__ot_read_only__ = ('look',)\n"
    (tmp_path / "vault.py").write_text(f"{marks}def wipe(): ...\ndef look(): ...\ndef put(): ...\n")
    tools = read_pack_file(tmp_path / "vault.py", pack="vault", target="vault")
    assert [(t.name, t.destructive, t.read_only) for t in tools] == [
        ("wipe", True, None), ("look", False, True), ("put", False, None)
    ]  # fmt: skip


def test_a_pack_marks_the_functions_that_are_done_in_a_moment(tmp_path: Path) -> None:
    source = "__ot_pure__ = ['double', 'later']\ndef double(): ...\ndef fetch(): ...\nasync def later(): ...\n"
    (tmp_path / "sums.py").write_text(source)
    tools = read_pack_file(tmp_path / "sums.py", pack="sums", target="sums")
    assert {tool.name: tool.pure for tool in tools} == {"double": True, "fetch": False, "later": False}


@pytest.mark.parametrize(
    "mark", ["'wipe'", "['gone']", "[1]", "[['wipe']]", "True", "{'wipe': 1}", "['wi' + 'pe']", "list(NAMES)", "None"]
)
def test_a_mark_that_cannot_be_read_makes_the_pack_unusable(mark: str, tmp_path: Path) -> None:
    (tmp_path / "vault.py").write_text(f"__ot_destructive__ = {mark}\ndef wipe(): ...\n")
    with pytest.raises(ToolUnavailable, match="__ot_destructive__ must be a list of names"):
        read_pack_file(tmp_path / "vault.py", pack="vault", target="vault")


def test_a_file_names_the_tools_whose_permission_its_functions_need(tmp_path: Path) -> None:
    (tmp_path / "vault.py").write_text(
        "__ot_needs__ = {'put': ['file.write', 'web.fetch']}\ndef put(): ...\ndef look(): ...\n"
    )
    tools = {tool.name: tool.needs for tool in read_pack_file(tmp_path / "vault.py", pack="vault", target="v")}
    assert tools == {"put": ("file.write", "web.fetch"), "look": ()}


@pytest.mark.parametrize(
    "needs",
    [
        "{'nope': ['file.write']}",
        "{'put': 'file.write'}",
        "{'put': ['write']}",
        "['put']",
        "{'put': ['file.*']}",
        "{'put': [1]}",
        "dict(put=[])",
        "{1: ['file.write']}",
    ],
)
def test_needs_that_cannot_be_read_make_the_pack_unusable(needs: str, tmp_path: Path) -> None:
    (tmp_path / "vault.py").write_text(f"__ot_needs__ = {needs}\ndef put(): ...\n")
    with pytest.raises(ToolUnavailable, match="__ot_needs__ must be like"):
        read_pack_file(tmp_path / "vault.py", pack="vault", target="v")


def test_live_functions_are_tools_too() -> None:
    def shout(text: str, *, times: int = 1) -> str:
        """Shout.

        Args:
            text: What.
        """
        return text.upper() * times

    (tool,) = tools_of_functions("live", {"shout": shout}, format="yml")
    assert (tool.full_name, tool.target, tool.format, tool.returns) == ("live.shout", "live:shout", "yml", "str")
    assert tool.doc.startswith("Shout.\n\nArgs:\n    text: What.")


def test_the_packs_that_are_bundled_can_all_be_read(caplog: pytest.LogCaptureFixture) -> None:
    from ot.build import BUNDLED

    with caplog.at_level(logging.WARNING):
        registry = ToolRegistry(BUNDLED.packs())
    assert {name: pack.broken for name, pack in registry.packs.items() if pack.broken} == {}
    assert registry.tools()
    assert caplog.records == []
    for tool in registry.tools():
        assert tool.description, tool.full_name


class Clock:
    """A clock that a test moves on."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def files(directory: Path, *names: str) -> list[Path]:
    found = [directory / name for name in names]
    for path in found:
        path.write_text("1")
    return found


def test_a_change_of_what_always_matters_is_seen_by_any_command(tmp_path: Path) -> None:
    config, pack = files(tmp_path, "config", "pack")
    freshness = Freshness([config], {"pack": [pack]}, Clock())
    assert not freshness.is_stale(["1"])
    config.write_text("22")
    assert freshness.is_stale(["1"])


def test_a_changed_pack_is_seen_at_once_by_a_command_that_names_it(tmp_path: Path) -> None:
    (pack,) = files(tmp_path, "pack")
    freshness = Freshness([], {"pack": [pack]}, Clock())
    pack.unlink()
    assert not freshness.is_stale(["other"])
    assert freshness.is_stale(["pack"])


def test_a_changed_pack_that_is_reached_by_an_alias_is_seen_within_a_second(tmp_path: Path) -> None:
    (pack,) = files(tmp_path, "pack")
    clock = Clock()
    freshness = Freshness([], {"pack": [pack]}, clock)
    pack.write_text("22")
    clock.now = 0.9
    assert not freshness.is_stale(["alias"])
    clock.now = 1.0
    assert freshness.is_stale(["alias"])
