"""How names in a program come to tools: packs, aliases, snippets, projects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ot.config.models import Project
from ot.runtime.engines.engine import Function
from ot.runtime.project_proxy import ProjectProxy
from run_app import BRAVE, BUNDLED, CONTEXT7, Calls, error_of, run_in, running_app, value_of

pytestmark = pytest.mark.anyio

PACKS = {"brave": BRAVE, "context7": CONTEXT7}


# ---------------------------------------------------------------- packs


@pytest.mark.scenario("000-25")
async def test_a_call_reaches_the_function_of_its_pack(tmp_path: Path) -> None:
    calls, other = Calls(), "def web_search(*, query: str) -> str: return f'other {query}'"
    async with running_app(tmp_path, {"other": other, **PACKS}, observers=[calls]) as app:
        assert value_of(await app.run('other.web_search(query="test")')) == "other test"
        assert value_of(await app.run('brave.web_search(query="test")')) == '["test 0","test 1"]'
    assert calls.tools == ["other.web_search", "brave.web_search"]


@pytest.mark.scenario("000-26")
async def test_an_unknown_pack_is_answered_with_those_that_exist(tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, "unknown.func()", PACKS))
    assert "there is no pack 'unknown'" in text
    assert f"Available packs: {', '.join(BUNDLED)}" in text


@pytest.mark.scenario("000-27")
@pytest.mark.parametrize("command", ["brave.nonexistent()", "x = brave.nonexistent", "f = [brave.nonexistent][0]"])
async def test_an_unknown_function_is_answered_with_those_of_its_pack(command: str, tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, command, PACKS))
    assert "AttributeError: 'nonexistent' is not in pack 'brave'" in text
    assert "Available functions: search, web_search\n" in text


@pytest.mark.scenario("000-28")
async def test_the_same_name_in_two_packs_means_two_functions(tmp_path: Path) -> None:
    async with running_app(tmp_path, PACKS) as app:
        assert value_of(await app.run('brave.search(query="test")')) == "brave found test"
        assert value_of(await app.run('context7.search(query="test")')) == "context7 found test"


async def test_what_a_pack_does_not_offer_cannot_be_called(tmp_path: Path) -> None:
    source = '__all__ = ["shown"]\nimport os\ndef shown(): return 1\ndef hidden(): return 2\ndef _private(): return 3\n'
    async with running_app(tmp_path, {"some": source}) as app:
        assert value_of(await app.run("some.shown()")) == "1"
        for name in ("hidden", "_private", "os", "__name__", "__dict__", "__class__"):
            assert "AttributeError" in error_of(await app.run(f"some.{name}()"))


async def test_a_function_of_a_pack_can_be_kept_and_called_later(tmp_path: Path) -> None:
    command = "find = brave.search\n[find(query=q) for q in ('a', 'b')]"
    assert value_of(await run_in(tmp_path, command, PACKS)) == '["brave found a","brave found b"]'


async def test_a_broken_pack_says_why_and_the_others_work(tmp_path: Path) -> None:
    packs = {
        "syntax": "def f(:\n",
        "imports": "import no_such_module_here\ndef f(): return 1\n",
        "fine": "def f(): return 1",
    }
    async with running_app(tmp_path, packs) as app:
        assert "syntax.py:1: invalid syntax" in error_of(await app.run("syntax.f()"))
        assert "pack 'imports' cannot be loaded: ModuleNotFoundError" in error_of(await app.run("imports.f()"))
        assert value_of(await app.run("fine.f()")) == "1"


# ---------------------------------------------------------------- aliases


@pytest.mark.scenario("000-29")
async def test_an_alias_means_its_tool(tmp_path: Path) -> None:
    calls = Calls()
    config = {"aliases": {"ws": "brave.web_search"}}
    reply = await run_in(tmp_path, 'ws(query="test")', PACKS, config, observers=[calls])
    assert value_of(reply) == '["test 0","test 1"]'
    assert calls.tools == ["brave.web_search"]


@pytest.mark.scenario("000-30")
async def test_a_name_that_is_no_alias_is_called_as_it_stands(tmp_path: Path) -> None:
    config = {"aliases": {"ws": "brave.web_search"}}
    async with running_app(tmp_path, PACKS, config) as app:
        assert "NameError: name 'unknown' is not defined" in error_of(await app.run("unknown(arg=1)"))
        assert value_of(await app.run("def unknown(arg): return arg + 1\nunknown(arg=1)")) == "2"


# ---------------------------------------------------------------- snippets


@pytest.mark.scenario("000-31")
async def test_a_snippet_is_expanded_and_run(tmp_path: Path) -> None:
    body = "found = [brave.search(query={{ q1 }}), brave.search(query={{ q2 }})]\n'{{ p }}: ' + ' and '.join(found)"
    config = {"snippets": {"wsq": {"body": body}}}
    async with running_app(tmp_path, PACKS, config) as app:
        assert value_of(await app.run("$wsq q1=AI q2=ML p=Compare")) == "Compare: brave found AI and brave found ML"
        assert (
            value_of(await app.run("```\n$wsq\nq1: a b\nq2: 'x'\np: it's\n```"))
            == "it's: brave found a b and brave found x"
        )


async def test_a_failure_in_a_snippet_names_the_line_of_its_template(tmp_path: Path) -> None:
    config = {"snippets": {"s": {"body": "a = {{ a }}\nb = 1\na / b / 0"}}}
    text = error_of(await run_in(tmp_path, "$s a=1", config=config))
    assert "ZeroDivisionError" in text
    assert "line 3: a / b / 0" in text


# ---------------------------------------------------------------- projects

ONETOOL = {"projects": {"onetool": "~/projects/onetool"}}
PATHS = {"exact": "ProjectPath", "portable": "PosixPath"}
"""What a project is called: the portable engine has one class of paths (docs/reference/portable-engine.md)."""


@pytest.mark.scenario("000-32")
async def test_a_project_is_the_configured_path_as_a_project_path(tmp_path: Path, home: Path, each_engine: str) -> None:
    async with running_app(tmp_path, config=ONETOOL) as app:
        assert value_of(await app.run("proj.onetool")) == f"{home}/projects/onetool"
        assert value_of(await app.run("repr(proj.onetool)")) == f"{PATHS[each_engine]}('{home}/projects/onetool')"


@pytest.mark.scenario("000-33")
async def test_the_functions_of_proj_go_before_projects(tmp_path: Path, home: Path) -> None:
    async with running_app(tmp_path, config=ONETOOL) as app:
        assert value_of(await app.run("f = proj.path\nf(name='onetool')")) == f"{home}/projects/onetool"
        listed = json.loads(value_of(await app.run("proj.list()")))
    assert listed == [{"name": "onetool", "path": f"{home}/projects/onetool", "attrs": {}}]


@pytest.mark.scenario("000-34")
async def test_a_project_can_be_joined_with_more_path(tmp_path: Path, home: Path, each_engine: str) -> None:
    async with running_app(tmp_path, config=ONETOOL) as app:
        shown = value_of(await app.run('repr(proj.onetool / "src")'))
        assert shown == f"{PATHS[each_engine]}('{home}/projects/onetool/src')"
        assert value_of(await app.run('proj.onetool / "src"')) == f"{home}/projects/onetool/src"
        assert value_of(await app.run('p = proj.onetool / "src" / "a.py"\n[p.name, p.suffix, p.parent.name]')) == (
            '["a.py",".py","src"]'
        )


@pytest.mark.scenario("000-32", "000-34")
async def test_a_project_is_a_path_whose_files_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("a")
    async with running_app(tmp_path, config={"projects": {"here": str(tmp_path / "work")}}) as app:
        looks = "[proj.here.exists(), (proj.here / 'a.txt').read_text(), [p.name for p in proj.here.iterdir()]]"
        assert value_of(await app.run(looks)) == '[true,"a",["a.txt"]]'


@pytest.mark.scenario("000-35")
@pytest.mark.parametrize("command", ["proj.unknown", "proj.unknown / 'src'", "x = [proj.unknown]", "proj.unknown()"])
async def test_an_unknown_project_is_answered_with_functions_and_projects(command: str, tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, command, config=ONETOOL))
    assert text.startswith("AttributeError: ")
    functions, _, projects = text.partition("Available functions: ")[2].partition("Available projects: ")
    assert {"path", "list"} == set(functions.strip(" .").split(", "))
    assert projects.startswith("onetool\n")


async def test_a_program_can_catch_that_a_project_is_unknown(tmp_path: Path) -> None:
    command = "try:\n    proj.unknown\nexcept AttributeError as error:\n    text = str(error)\ntext"
    assert "Available projects: onetool" in value_of(await run_in(tmp_path, command, config=ONETOOL))


async def test_a_project_with_attributes_shows_them(tmp_path: Path) -> None:
    config = {"projects": {"site": {"path": "/srv/site", "attrs": {"lang": "en"}}}}
    async with running_app(tmp_path, config=config) as app:
        assert value_of(await app.run("proj.list()[0]['attrs']['lang']")) == "en"
        assert value_of(await app.run("str(proj.site)")) == "/srv/site"
        text = error_of(await app.run("proj.path(name='sit')"))
    assert "Available projects: site" in text


async def test_a_path_can_be_given_to_a_tool(tmp_path: Path) -> None:
    config = {"projects": {"here": str(tmp_path / "work")}}
    async with running_app(
        tmp_path, {"show": "def kind(*, value): return [type(value).__name__, value]"}, config
    ) as app:
        found = json.loads(value_of(await app.run("show.kind(value=proj.here / 'x')")))
    assert found == ["str", f"{tmp_path}/work/x"]


@pytest.mark.scenario("000-33")
@pytest.mark.parametrize("name", ["path", "list"])
def test_a_project_named_like_a_function_does_not_hide_it(name: str) -> None:
    proxy = ProjectProxy({name: Project.model_validate({"path": "/srv/x"})})
    assert proxy.member(name) == Function()
