"""Compares what your servers cost a model when their tools are offered in four ways.

python benchmarks/bench.py                    the definitions of your servers alone
python benchmarks/bench.py tasks.yaml         also the tasks, played by their scripts
python benchmarks/bench.py tasks.yaml --model NAME
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

sys.path.append(str(Path(__file__).parents[1]))

from benchmarks.four_ways.measure import Bench, open_bench
from benchmarks.four_ways.model_solver import ModelSolver, summary
from benchmarks.four_ways.suite import BenchSuite, read_suite
from benchmarks.four_ways.ways import WAYS, WayName

from onetool_chat.cli.options import Provider
from onetool_chat.open_chat import choose_chat, open_client
from onetool_chat.settings import Chat
from ot.cli.exit_codes import FAILURE, NOT_FOUND, OK, exit_code
from ot.cli.terminal import echo, echo_either, fail
from ot.cli.terminal.event_loop import run_async
from ot.cli.terminal.options import AsJson, TrustProject
from ot.cli.terminal.own_workspace import own_workspace
from ot.errors import OneToolError
from ot.workspace import Workspace

SUITE_FIGURES = ("round_trips", "definitions", "results", "input", "output")
"""Without the time, which is in the JSON: tasks are played once, and the first way pays for what is done once."""
MODEL_FIGURES = ("input", "output", "turns", "help_calls", "replies", "help_replies", "seconds")


def bench(
    suite: Annotated[
        Path | None, typer.Argument(help="A YAML file of tasks; without it only the definitions are counted.")
    ] = None,
    ways: Annotated[
        str, typer.Option(help="Which ways, separated by commas: flat, search, codemode, onetool.")
    ] = "flat,search,codemode,onetool",
    model: Annotated[
        list[str] | None,
        typer.Option(help="Let this model solve the tasks instead of their scripts; may be given several times."),
    ] = None,
    provider: Provider = None,
    repeat: Annotated[int, typer.Option(min=1, help="How often a model tries each task.")] = 1,
    trust_project: TrustProject = False,
    as_json: AsJson = False,
) -> None:
    """Compare what your servers cost a model: all tools listed, search then call, FastMCP's CodeMode, OneTool.

    Without a suite: the tokens of tool definitions that every request carries. With one: also round trips, results
    and all that the model reads and writes, from the calls that the suite says a competent model makes. That is no
    model's result; --model asks one. Tools that ask first are refused: allow those of the suite in the policy.

    Exit code 0: everything was measured; 1: a server is unavailable, or a script did not solve its task; 2: the
    options are wrong; 3: the suite is missing. A model that fails its tasks is a result, and no error.
    """
    if suite is not None and not suite.is_file():
        fail(f"there is no suite {suite}: give a YAML file with tasks", NOT_FOUND)
    if model and suite is None:
        raise typer.BadParameter("--model needs a suite of tasks")
    tasks = read_suite(suite) if suite else None
    found = run_async(_measure(ways, tasks, model or [], provider, repeat, trust_project))
    echo_either(as_json, found, _lines(found))
    failed = [row for row in found.get("tasks", ()) if row["problem"]]
    raise typer.Exit(FAILURE if failed or found["left_out"] else OK)


async def _measure(
    ways: str, suite: BenchSuite | None, models: Sequence[str], provider: Provider, repeat: int, trust_project: bool
) -> dict[str, Any]:
    asked = set(ways.split(","))
    chosen: list[WayName] = [way for way in WAYS if asked.intersection((way,))]
    if unknown := asked - set[str](WAYS):
        raise typer.BadParameter(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(WAYS)}")
    async with (
        own_workspace(terminal_level="ERROR", trust_project=trust_project) as app,
        open_bench(app, chosen) as opened,
    ):
        found = _definitions(opened)
        if suite and models:
            found |= await _by_models(opened, app, suite, _settings(app, provider, models), repeat)
        elif suite:
            found["tasks"] = await opened.play(suite)
        return found


def _definitions(opened: Bench) -> dict[str, Any]:
    servers = {pack: len(tools) for pack, tools in opened.tools.items()}
    return {
        "servers": servers,
        "tools": sum(servers.values()),
        "left_out": dict(opened.left_out),
        "definitions": opened.definitions,
    }


def _settings(app: Workspace, provider: Provider, models: Sequence[str]) -> list[Chat]:
    return [choose_chat(app.picture.loaded.config.section(Chat), provider, name) for name in models]


async def _by_models(
    opened: Bench, app: Workspace, suite: BenchSuite, chats: Sequence[Chat], repeat: int
) -> dict[str, Any]:
    attempts: list[Any] = []
    for chat in chats:

        def open_model(system: str, chat: Chat = chat) -> Any:
            return open_client(chat.model_copy(update={"system": system}), app.picture.loaded.secrets)

        attempts += await opened.ask(suite, ModelSolver(open_model, chat), repeat)
    return {"models": summary(attempts), "attempts": [asdict(attempt) for attempt in attempts]}


# ---------------------------------------------------------------- for a person


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    for pack, why in found["left_out"].items():
        echo(f"left out: {pack}: {why}", err=True)
    if not found["servers"]:
        echo("There are no servers to compare. Next: onetool init --from all, or onetool add", err=True)
    servers = "1 server" if len(found["servers"]) == 1 else f"{len(found['servers'])} servers"
    yield f"{found['tools']} tools of {servers}; tokens are bytes / 4"
    yield ""
    yield from _table(("way", "listed", "definitions"), found["definitions"])
    if tasks := found.get("tasks"):
        yield from ("", "Scripted, not by a model:", "")
        yield from _table(("task", "way", *SUITE_FIGURES), tasks)
        yield from (f"not solved: {row['task']} by {row['way']}: {row['problem']}" for row in tasks if row["problem"])
    if models := found.get("models"):
        yield ""
        yield from _table(("model", "way", "passed", *MODEL_FIGURES), [_model_cells(row) for row in models])


def _model_cells(row: Mapping[str, Any]) -> dict[str, str]:
    low, high = row["pass"]["interval"]
    passed = f"{row['passed']} of {row['attempts']} ({low:.0%} to {high:.0%})"
    means = {key: f"{row[key]['mean']:,.1f}" for key in MODEL_FIGURES}
    return {"model": row["model"], "way": row["way"], "passed": passed, **means}


def _table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield *rows* in columns, figures to the right."""
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    table = [[column.replace("_", " ") for column in columns], *cells]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    words = [all(isinstance(row[column], str) for row in rows) for column in columns]
    for line in table:
        sides = zip(line, widths, words, strict=True)
        yield "  ".join(cell.ljust(width) if word else cell.rjust(width) for cell, width, word in sides).rstrip()


def _cell(value: Any) -> str:
    match value:
        case float():
            return f"{value:.3f}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)


def main() -> None:
    """Run the command; what goes wrong on purpose ends with a sentence, as in ``onetool``."""
    try:
        typer.run(bench)
    except OneToolError as error:
        echo(f"bench: {error}", err=True)
        sys.exit(exit_code(error))


if __name__ == "__main__":
    main()
