"""onetool test: replays the programs that have a cassette beside them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ot.cli.exit_codes import FAILURE, NOT_FOUND, OK
from ot.cli.terminal import echo, echo_either, fail, pluralize
from ot.cli.terminal.options import AsJson, TrustProject

NOTHING = "no program has a cassette beside it: onetool run -f NAME.py --record NAME.cassette.yaml writes one"


def test(
    name: Annotated[str | None, typer.Argument(help="One program, by its name without .py.")] = None,
    as_json: AsJson = False,
    trust_project: TrustProject = False,
) -> None:
    """Replay programs that have a cassette beside them; no tool is called."""
    from ot.cli.terminal.event_loop import run_async

    rows = run_async(_replay(name, trust_project))
    if not rows:
        fail(f"there is no program '{name}' with a cassette beside it" if name else NOTHING, NOT_FOUND)
    failed = [row for row in rows if row["differences"]]
    lines = [f"{'failed' if row in failed else 'ok':6}  {row['name']}  {row['file']}" for row in rows]
    echo_either(as_json, rows, lines)
    for row in failed:
        echo("\n  ".join([f"\n{row['name']}:", *row["differences"]]), err=True)
    if failed:
        fail(f"{pluralize(len(failed), 'program')} of {len(rows)} did not do what was recorded", FAILURE)
    raise typer.Exit(OK)


async def _replay(name: str | None, trust_project: bool) -> list[dict[str, Any]]:
    from ot.cli.terminal.own_workspace import own_workspace
    from ot.runtime.cassettes.programs import programs_with_cassettes, replay_program

    async with own_workspace(terminal_level="ERROR", trust_project=trust_project) as app:
        rows: list[dict[str, Any]] = []
        for one in programs_with_cassettes(app.paths.global_dir, app.picture.loaded.project):
            if name in (None, one.name):
                differences = await replay_program(one, app.run, app.picture.loaded.secrets.redact)
                rows.append({"name": one.name, "file": str(one.file), "differences": differences})
        return rows
