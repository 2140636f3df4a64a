"""onetool save: a run's program as a tool of its own."""

from __future__ import annotations

import ast
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import FAILURE, NOT_FOUND
from ot.cli.terminal import columns, echo_either, fail
from ot.cli.terminal.options import AsJson
from ot.visible_text import printable

if TYPE_CHECKING:
    from ot.config.paths import Paths
    from ot.ledger.kept_programs import KeptProgram

MOST_LISTED = 20
MAX_LINE = 60
FUNCTION = "run"
"""What the function is called where only the file's name is given."""


def save(
    run: Annotated[str, typer.Argument(help="The run's id; without one the latest runs are listed.")] = "",
    name: Annotated[str, typer.Option("--as", help="What it is to be called: FILE.FUNCTION, or FILE.")] = "",
    param: Annotated[
        list[str] | None, typer.Option(help="NAME=LITERAL: a parameter, in the place of that literal; repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a run's program into ~/.onetool/programs/ as a function, which every program can call from then on."""
    from ot.config.paths import Paths
    from ot.errors import ToolUnavailable
    from ot.ledger.kept_programs import read_kept
    from ot.registry.saved_programs import new_program, write_program
    from ot.runtime.program import parse_program
    from ot.runtime.program_as_function import write_function

    paths = Paths.find()
    kept = read_kept(paths.global_dir)
    if not run:
        return _list_kept(kept, as_json)
    found = next((one for one in kept if one.run == run), None)
    if found is None:
        fail(f"no program of a run '{printable(run)}' is kept: onetool save lists those that are", NOT_FOUND)
    file, _, function = name.partition(".")
    function = function or FUNCTION
    if not function.isidentifier() or not function.isascii() or function.startswith("_"):
        raise typer.BadParameter("--as: give FILE.FUNCTION, such as --as triage.weekly")
    parameters = dict(map(_parameter, param or []))
    try:
        text = write_function(parse_program(found.program), function, parameters, run)
        program = new_program(paths.global_dir, file, text, _known_packs(paths))
        write_program(program)
    except (ValueError, OSError, ToolUnavailable) as error:
        fail(f"run {run} was not saved: {error}", FAILURE)
    tool, given = f"{file}.{function}", ", ".join(f"{given}={value!r}" for given, value in parameters.items())
    lines = [f"Wrote {printable(str(program.file))}", f"Next: onetool run '{printable(f'{tool}({given})')}'"]
    echo_either(as_json, {"tool": tool, "file": str(program.file), "parameters": list(parameters)}, lines)
    return None


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, written = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"--param {text}: write NAME=LITERAL, such as --param days=7")
    try:
        return name.strip(), ast.literal_eval(written)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return name.strip(), written  # a text that a shell has taken the quotes of


def _list_kept(kept: list[KeptProgram], as_json: bool) -> None:
    cells = [["run", "at", "begins with"]]
    for one in kept[:MOST_LISTED]:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.at))
        cells.append([one.run, at, printable(one.program.strip().partition("\n")[0])[:MAX_LINE]])
    echo_either(as_json, [asdict(one) for one in kept], columns(cells))


def _known_packs(paths: Paths) -> list[str]:
    from ot.build import known_packs
    from ot.config.load import load_config
    from ot.config.trust import Trust
    from ot.registry.extension_source import extensions_of_user

    loaded = load_config(paths, Trust(paths.global_dir))
    return [*known_packs(loaded, extensions_of_user(paths.global_dir))]
