"""Every command explains itself, and all of them in the same way."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from cli.command import OneTool
from ot import errors
from ot.cli.command_table import EVERYDAY, all_commands
from ot.cli.commands import build_app
from ot.cli.exit_codes import BACKEND, DENIED, ERRORS, FAILURE, MEANINGS, NOT_FOUND, TIMEOUT, exit_code
from ot.cli.overview import OPTIONS, overview
from ot.errors import LimitExceeded, NotApproved, RateLimited, ToolFailed, UnknownPack
from ot.version import installed_version

ROOT: Any = typer.main.get_command(build_app())
ROWS = {name: (summary, example) for rows in all_commands().values() for name, _, summary, example in rows}


def _below(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _below(child, (*path, name))


ALL = dict(_below(ROOT))
LEAVES = [path for path, command in ALL.items() if not hasattr(command, "commands")]
PAGES = pytest.mark.parametrize("path", ALL, ids=lambda path: " ".join(path) or "onetool")
EACH = pytest.mark.parametrize("path", LEAVES, ids=" ".join)


def _help(path: tuple[str, ...]) -> str:
    context = ALL[path].make_context(" ".join(("onetool", *path)), [], resilient_parsing=True)
    return ALL[path].get_help(context)


def test_help_knows_every_command() -> None:
    expected = "serve run init check trust untrust approve dev stats logs chat listen doctor add servers remove enable"
    expected += " disable allow ask deny list search show"
    assert {*expected.split(), "new pack", "config schema"} <= {" ".join(path) for path in LEAVES}


def test_the_table_has_each_command_once_and_no_other() -> None:
    assert sorted(ROWS) == sorted(" ".join(path) for path in LEAVES)
    assert len(ROWS) == sum(map(len, all_commands().values()))


@PAGES
def test_every_page_begins_with_the_usage_and_ends_with_an_example(path: tuple[str, ...]) -> None:
    page = _help(path)
    assert page.startswith("Usage: ")
    assert "onetool" in page.rpartition("Example: ")[2]


@PAGES
def test_every_option_is_explained(path: tuple[str, ...]) -> None:
    assert ALL[path].help
    for parameter in ALL[path].params:
        assert getattr(parameter, "help", ""), parameter.name


@PAGES
def test_no_line_is_cut_or_wider_than_eighty_columns(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = _help(path).splitlines()
    assert [line for line in lines if len(line) > 80 and "Example: " not in line] == []
    assert [line for line in lines if line.endswith("...") and not line.startswith(("Usage:", "       "))] == []


@EACH
def test_every_command_prints_json_and_has_its_own_example(path: tuple[str, ...]) -> None:
    options = {name: parameter for parameter in ALL[path].params for name in parameter.opts}
    assert options["--json"].is_flag
    _, example = ROWS[" ".join(path)]
    assert f"onetool {' '.join(path)}" in example
    assert ALL[path].epilog == f"Example: {example}"


@EACH
def test_a_command_that_is_named_is_built_alone_and_explains_itself_alike(path: tuple[str, ...]) -> None:
    alone: Any = typer.main.get_command(build_app(path[0]))
    assert list(alone.commands) == [path[0]]
    for name in path:
        alone = alone.commands[name]
    assert (alone.help, [one.opts for one in alone.params]) == (ALL[path].help, [one.opts for one in ALL[path].params])


def test_help_is_the_same_with_and_without_the_library(onetool: OneTool) -> None:
    ended = onetool("--help")
    assert (ended.code, ended.out, ended.err) == (0, overview(), "")
    assert _help(()) == overview().rstrip("\n")


def test_help_names_the_fifteen_everyday_commands_and_how_to_see_all() -> None:
    page = overview()
    named = {name for name, (summary, _) in ROWS.items() if f"  {summary}\n" in page}
    assert named == EVERYDAY
    assert len(named) == 15
    assert f"All {len(ROWS)} commands: onetool --help --all\n" in page


@pytest.mark.parametrize("arguments", [["--help", "--all"], ["--all"], ["--all", "--help"]])
def test_all_commands_are_shown_where_that_is_asked(onetool: OneTool, arguments: list[str]) -> None:
    ended = onetool(*arguments)
    assert (ended.code, ended.out, ended.err) == (0, overview(every=True), "")


def test_the_whole_overview_names_every_group_command_and_option() -> None:
    page = overview(every=True)
    assert page.isascii()
    assert [line[:-1] for line in page.splitlines() if line.endswith(":")] == [*all_commands(), "Options"]
    for name, (summary, _) in ROWS.items():
        assert [line for line in page.splitlines() if line.startswith(f"  {name} ") and line.endswith(f"  {summary}")]
    assert {name for one in ROOT.params for name in one.opts} | {"--help"} == {name for name, _ in OPTIONS}


def test_version_prints_the_installed_version(onetool: OneTool) -> None:
    ended = onetool("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"{installed_version()}\n", "")


def test_without_arguments_there_is_help(onetool: OneTool) -> None:
    ended = onetool()
    assert (ended.code, ended.out + ended.err) == (2, overview())


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["--nonsense"], ["run", "--nonsense"], ["init", "surplus"], ["new"], ["new", "x"]]
)
def test_a_wrong_command_ends_with_two_and_a_hint(onetool: OneTool, arguments: list[str]) -> None:
    ended = onetool(*arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert "--help" in ended.err


def test_a_misspelt_command_is_guessed(onetool: OneTool) -> None:
    assert "Did you mean 'search'?" in onetool("serach").err


def test_the_command_is_installed_under_both_names(onetool: OneTool) -> None:
    ended = onetool.process("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"{installed_version()}\n", "")
    assert Path(sys.executable).with_name("onetool-run").exists()


# ---------------------------------------------------------------- exit codes


def test_every_error_and_limit_with_a_code_exists() -> None:
    from ot.config.models import Limits

    known = {name for name, _ in inspect.getmembers(errors, inspect.isclass)} | set(Limits.model_fields)
    assert set(ERRORS) <= known
    assert set(ERRORS.values()) <= set(MEANINGS)


def test_a_class_of_errors_ends_with_the_code_of_the_one_above_it() -> None:
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        for base in kind.__bases__:
            assert base.__name__ not in ERRORS or ERRORS.get(name) == ERRORS[base.__name__], name


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnknownPack("x", ()), NOT_FOUND),
        (NotApproved("a.b", "no"), DENIED),
        (RateLimited("model", 3), BACKEND),
        (LimitExceeded("run_seconds", "too long"), TIMEOUT),
        (LimitExceeded("calls", "too many"), FAILURE),
        (ToolFailed("a.b", "ValueError", "x"), FAILURE),
    ],
)
def test_an_error_ends_with_the_code_of_its_class(error: Exception, code: int) -> None:
    assert exit_code(error) == code


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("1 + 1", 0),
        ("1 / 0", FAILURE),
        ("file.delete(path='x')", DENIED),
        ("try: file.delete(path='x')\nexcept PermissionError: 1 / 0", FAILURE),
        ("gone.look()", BACKEND),
        ("ot.result(handle='nothing')", NOT_FOUND),
        ("while True: pass", TIMEOUT),
    ],
)
def test_a_program_ends_with_the_code_of_what_it_did_not_catch(onetool: OneTool, program: str, code: int) -> None:
    onetool.user.mkdir(parents=True)
    (onetool.user / "onetool.yaml").write_text(
        f"policy: {{deny: ['file.delete']}}\nlimits: {{run_seconds: {1 if code == TIMEOUT else 60}}}\n"
        "servers: {gone: {command: /no/such-program}}\n"
    )
    ended = onetool("run", "--json", program)
    assert (ended.code, json.loads(ended.out)["is_error"]) == (code, code != 0)
