"""onetool undo: takes back what a run changed in files and notes."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import DENIED, FAILURE, NOT_FOUND, OK, exit_code
from ot.cli.runs import find_kept_run, list_calls, list_kept_runs
from ot.cli.terminal import columns, echo, echo_either, fail, pluralize
from ot.cli.terminal.options import AsJson
from ot.visible_text import printable

if TYPE_CHECKING:
    from ot.execution.caller import Question
    from ot.runtime.reply import BareReply

NOTHING_KEPT = "No run has changed files or notes that an undo could restore."


def undo(
    id: Annotated[str, typer.Argument(help="The run's id; without one the latest runs are listed.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be restored.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Restore what a run changed in files and notes, where it is still as the run left it; you are asked first.

    What has changed since is shown and left alone. An undo is a run, too, and can be undone.
    """
    if not id:
        _list_kept(as_json)
        return
    from ot.cli.terminal.event_loop import run_async
    from ot.cli.terminal.prompts import somebody_is_there

    _go_to_its_directory(id)
    found = _look(id)
    if dry_run or not found["restored"]:
        echo_either(as_json, found, _lines(found, "would be restored"))
        raise typer.Exit(OK if dry_run or not found["left"] else FAILURE)
    if not yes and not somebody_is_there():
        fail("nobody is here to agree: look at it with --dry-run, then give --yes", DENIED)
    for line in () if yes else _lines(found, "would be restored"):
        echo(line, err=True)
    reply = run_async(_undo(id, yes))
    if reply.failure:
        fail(str(reply.failure), exit_code(reply.failure))
    done = {**reply.value, "undone_by": reply.run}
    echo_either(as_json, done, [*_lines(done, "restored"), f"To take this back: onetool undo {reply.run}"])
    raise typer.Exit(FAILURE if done["left"] else OK)


def _list_kept(as_json: bool) -> None:
    rows: list[dict[str, Any]] = [{**kept.about, "paths": list(kept.paths)} for kept in list_kept_runs()]
    cells = [["run", "at", "changed", "in"]]
    for row in rows:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["at"]))
        changed = pluralize(len(row["paths"]), "path")
        cells.append([row["run"], at, changed, printable(row["directory"])])
    echo_either(as_json, rows, columns(cells) if rows else [NOTHING_KEPT])


def _go_to_its_directory(id: str) -> None:
    """Work where the run did: what may be changed there is for the settings of that directory to say."""
    kept = find_kept_run(id)
    directory = Path(kept.about["directory"]) if kept else None
    if directory and not directory.is_dir():
        fail(f"run {id} worked in {directory}, which is gone", NOT_FOUND)
    os.chdir(directory or Path.cwd())


def _look(id: str) -> dict[str, Any]:
    from ot.cli.terminal.own_workspace import workspace_at_rest
    from ot.config.principal import os_user

    with workspace_at_rest() as app:
        try:
            found = app.picture.undo.look(os_user(), id)
        except (LookupError, ValueError) as error:
            fail(str(error), NOT_FOUND if isinstance(error, LookupError) else FAILURE)
        return {**found, "others": app.picture.undo.list_others(list_calls(id), app.picture.registry)}


async def _undo(id: str, yes: bool) -> BareReply:
    from ot.cli.terminal.own_workspace import own_workspace
    from ot.cli.terminal.prompts import TerminalQuestion
    from ot.config.principal import os_user
    from ot.execution.caller import Answer, Caller
    from ot.runtime.reply import BareReply
    from ot.stats.rows import CLI

    async def agree(question: Question) -> Answer:
        return Answer("accept", {"decision": "allow"})

    async with own_workspace(terminal_level="WARNING") as app:
        ask = agree if yes else TerminalQuestion(app.ask_seconds)
        reply = await app.call("ot", "undo", {"run": id}, Caller(os_user(), client=CLI, ask=ask), bare=True)
        assert isinstance(reply, BareReply)
        return reply


def _lines(found: Mapping[str, Any], restored: str) -> list[str]:
    """Return what is, or would be, done for a person to read; what other programs wrote is marked line by line."""
    lines = [f"{restored}: {path}" for path in found["restored"]]
    lines += [f"as it was already: {path}" for path in found["same"]]
    for one in found["left"]:
        shown = f"left alone: {one['path']}: {one['why']}"
        lines.append("\n  | ".join([shown, *one["difference"].splitlines()]))
    lines += [f"nothing takes back: {call}" for call in found["others"]]
    return [*lines, *filter(None, [found["note"]])] or ["The run changed nothing."]
