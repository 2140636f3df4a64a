"""Every command explains itself, and none costs more than it must."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from cli.command import OneTool
from ot.cli.commands import app
from ot.version import installed_version


def commands() -> Iterator[tuple[str, ...]]:
    """Yield the path of every command and group that there is."""
    todo: list[tuple[tuple[str, ...], object]] = [((), typer.main.get_command(app))]
    while todo:
        path, command = todo.pop()
        yield path
        for name, below in getattr(command, "commands", {}).items():
            todo.append(((*path, name), below))


COMMANDS = sorted(commands())


def test_all_commands_are_known() -> None:
    names = {" ".join(path) for path in COMMANDS}
    expected = ["serve", "run", "init", "check", "trust", "untrust", "approve", "new", "dev", "stats", "logs", "config"]
    expected += ["chat", "listen", "doctor", "connect", "disconnect"]
    expected += ["add", "servers", "remove", "enable", "disable", "allow", "ask", "deny"]
    assert {"", *expected, "new pack", "config schema"} == names


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "onetool")
def test_every_command_has_help_with_an_example(onetool: OneTool, path: tuple[str, ...]) -> None:
    ended = onetool(*path, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("Usage: ")
    # A group's example is that of its commands.
    if path != ("config",):
        assert "Example: " in ended.out
        assert "onetool" in ended.out.partition("Example: ")[2]


def test_no_line_of_the_list_of_commands_is_cut(onetool: OneTool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = onetool("--help").out.partition("Commands:")[2].splitlines()
    assert len(listed) > 20
    assert not [line for line in listed if line.endswith("...") or len(line) > 80]


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "onetool")
def test_every_option_is_explained(path: tuple[str, ...]) -> None:
    command = typer.main.get_command(app)
    for name in path:
        command = getattr(command, "commands")[name]  # noqa: B009 - only groups have it
    assert command.help
    for parameter in command.params:
        assert getattr(parameter, "help", "") or parameter.name in ("install_completion", "show_completion"), (
            parameter.name
        )


def test_the_version_is_told(onetool: OneTool) -> None:
    ended = onetool("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"{installed_version()}\n", "")


def test_without_arguments_there_is_help(onetool: OneTool) -> None:
    ended = onetool()
    assert "Usage: " in ended.out + ended.err
    assert "serve" in ended.out + ended.err


@pytest.mark.parametrize("arguments", [["nonsense"], ["--nonsense"], ["run", "--nonsense"], ["init", "surplus"]])
def test_a_wrong_command_ends_with_two_and_a_hint(onetool: OneTool, arguments: list[str]) -> None:
    ended = onetool(*arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert "--help" in ended.err


def test_the_command_is_installed_under_both_names(onetool: OneTool) -> None:
    ended = onetool.process("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"{installed_version()}\n", "")
    assert Path(sys.executable).with_name("onetool-run").exists()


def test_help_and_version_load_neither_protocol_nor_engine(onetool: OneTool) -> None:
    for argument in ("--version", "--help"):
        ended = onetool.process(argument, PYTHONPROFILEIMPORTTIME="1")
        loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in ended.err.splitlines()}
        assert "typer" in loaded
        assert loaded.isdisjoint({"fastmcp", "mcp", "pydantic_monty", "yaml", "jinja2", "griffe", "rapidfuzz"})
