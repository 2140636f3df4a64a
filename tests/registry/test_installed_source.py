"""Packs that other distributions bring: modules that are read, and objects that are imported when first asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from mcp_core.consent import WARNING
from ot.errors import ToolUnavailable
from ot.registry.installed_source import installed_packs
from ot.registry.tool_registry import Pack

FILES = {
    "guest_plain": '''
        """A pack of plain functions."""
        raise SystemExit("must not be imported")
        def hello(*, name: str) -> str:
            """Greet."""
        ''',
    "guest_typed": '''
        """Typed tools and a plain one."""
        from types import SimpleNamespace
        from typing import Annotated, Any, Literal
        from pydantic import Field
        from mcp_core import Consent, Result, ToolArguments, program_function

        class WipeArguments(ToolArguments):
            place: str = Field(description="What to wipe")
            consent: Annotated[Literal["WIPE"], Consent()]
            options: dict[str, Any] = Field(default_factory=dict)

        def wipe(args: WipeArguments) -> Result[list[str]]:
            """Wipe a place.

            For good.

            Example:
                wipe(place="x", consent="WIPE")
            """
            return Result.ok([args.place])

        def plain(*, number: int = 3) -> int:
            """Return a number."""
            return number

        TOOLS = SimpleNamespace(wipe=program_function(wipe), plain=plain, _hidden=plain)
        EMPTY, MIXED, NUMBER = SimpleNamespace(), SimpleNamespace(a=plain, b=3), 3
        ''',
    "guest_unknown": '''
        from __future__ import annotations
        from types import SimpleNamespace

        def odd(args: Unknown) -> None:
            """Have a type that nobody knows."""

        TOOLS = SimpleNamespace(odd=odd)
        ''',
    "guest_broken": "raise RuntimeError('no way')",
}


@pytest.fixture(autouse=True)
def guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, source in FILES.items():
        (tmp_path / f"{name}.py").write_text(dedent(source))
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in FILES:
        sys.modules.pop(name, None)


def install(folder: Path, value: str, name: str = "guest", distribution: str = "guests") -> None:
    """Write what an installer writes of a distribution that brings a pack."""
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[console_scripts]\nx = y:z\n\n[onetool.packs]\n{name} = {value}\n")


def guests_packs() -> list[Pack]:
    """Return the packs that are not of this very project."""
    return [pack for pack in installed_packs() if pack.name != "guide"]


def pack_of(value: str, folder: Path) -> Pack:
    install(folder, value)
    (pack,) = guests_packs()
    return pack


def test_the_first_of_two_copies_on_the_path_counts_and_what_cannot_be_read_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "second", "guest_typed")
    install(tmp_path / "first", "guest_plain")
    install(tmp_path / "first", "guest_plain", "another", "others")
    (tmp_path / "first" / "bare-1.0.dist-info").mkdir()
    for folder in ("second", "first", "missing"):
        monkeypatch.syspath_prepend(tmp_path / folder)
    assert {(pack.name, pack.origin) for pack in guests_packs()} == {
        ("guest", "guest_plain"),
        ("another", "guest_plain"),
    }


def test_the_projects_own_pack_is_found() -> None:
    assert [pack.origin for pack in installed_packs() if pack.name == "guide"] == ["mcp_guide.pack:TOOLS"]


def test_a_module_is_read_without_importing_it(tmp_path: Path) -> None:
    pack = pack_of("guest_plain", tmp_path)
    assert (pack.name, pack.source, pack.origin) == ("guest", "local", "guest_plain")
    assert [(tool.full_name, tool.target) for tool in pack.tools.values()] == [("guest.hello", "guest_plain:hello")]
    assert "guest_plain" not in sys.modules


def test_an_object_s_functions_are_tools_with_all_that_their_models_say(tmp_path: Path) -> None:
    pack = pack_of("guest_typed:TOOLS", tmp_path)
    assert "guest_typed" not in sys.modules
    assert list(pack.tools) == ["wipe", "plain"]
    wipe = pack.tools["wipe"]
    assert (wipe.target, wipe.destructive, wipe.read_only) == ("guest_typed:TOOLS.wipe", True, None)
    assert wipe.description == f"Wipe a place. {WARNING.format(name='consent', word='WIPE')}"
    assert wipe.doc.endswith('Example:\n    guest.wipe(place="x", consent="WIPE")')
    assert [(p.name, p.kind, p.annotation, p.default, p.description) for p in wipe.parameters] == [
        ("place", "keyword", "str", None, "What to wipe"),
        ("consent", "keyword", "Literal['WIPE']", None, "Pass 'WIPE', and only when the user has asked for this"),
        ("options", "keyword", "dict[str, Any]", "{}", ""),
    ]
    assert wipe.returns == "list[str]"
    assert wipe.input_schema
    assert (wipe.input_schema["required"], wipe.input_schema["additionalProperties"]) == (["place", "consent"], False)
    plain = pack.tools["plain"]
    assert (plain.destructive, plain.input_schema, plain.parameters[0].default) == (False, None, "3")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("guest_nowhere", "guest_nowhere is not a Python module"),
        ("guest_nowhere:TOOLS", "ModuleNotFoundError"),
        ("guest_broken:TOOLS", "RuntimeError: no way"),
        ("guest_plain:TOOLS", "SystemExit: must not be imported"),
        ("guest_unknown:TOOLS", "NameError: name 'Unknown' is not defined"),
        ("guest_typed:NOTHING", "AttributeError"),
        ("guest_typed:NUMBER", "TypeError"),
        ("guest_typed:EMPTY", "must hold functions"),
        ("guest_typed:MIXED", "must hold functions"),
    ],
)
def test_a_pack_that_cannot_be_used_says_why(value: str, words: str, tmp_path: Path) -> None:
    pack = pack_of(value, tmp_path)
    with pytest.raises(ToolUnavailable, match=words):
        _ = pack.tools
    assert words in pack.broken
