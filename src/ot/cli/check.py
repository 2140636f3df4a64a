"""onetool check: is the configuration usable, does everything start, and does a program run?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from ot.cli.exit_codes import FAILURE, OK
from ot.cli.terminal import echo_either
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.cli.diagnosis.starts import StartOutcome


def check(as_json: AsJson = False) -> None:
    """Start every pack and server, run a program, and say what is wrong."""
    from ot.cli.terminal.event_loop import run_async

    found = run_async(_check())
    echo_either(as_json, found, _lines(found))
    raise typer.Exit(OK if found["ok"] else FAILURE)


async def _check() -> dict[str, Any]:
    from ot.cli.diagnosis.setup import disabled_findings, program_findings
    from ot.cli.diagnosis.starts import start_all
    from ot.cli.servers import server_rows
    from ot.config.models import pattern_lists
    from ot.config.paths import Paths
    from ot.errors import OneToolError
    from ot.workspace import Workspace

    try:
        app = Workspace.alone(Paths.find())
    except OneToolError as error:
        return {"ok": False, "errors": [str(error)]}
    try:
        starts, program = await start_all(app), await program_findings(app)
    finally:
        await app.aclose()
    loaded = app.picture.loaded
    policy = loaded.config.policy
    groups = {name: pattern_lists(group) for name, group in policy.groups.items()}
    errors = [
        f"{start.kind} {start.name} cannot start: {start.why.rstrip('.')} ({start.advice})"
        for start in starts
        if start.state == "cannot start"
    ]
    errors += [finding.text for finding in program if finding.state == "problem"]
    return {
        "ok": not errors,
        "files": [str(file) for file in loaded.files],
        "project": loaded.project_state,
        "packs": len(app.picture.registry.packs),
        "tools": len(app.tool_names()),
        "engine": app.engine.name,
        "starts": [start.row for start in starts],
        "servers": _with_causes(server_rows(loaded, app.paths), starts),
        "policy": pattern_lists(policy) | ({"groups": groups} if groups else {}),
        "warnings": [
            *loaded.warnings,
            *app.picture.hidden_packs(),
            *(finding.text for finding in disabled_findings(app)),
        ],
        "errors": errors,
    }


def _with_causes(rows: list[dict[str, Any]], starts: list[StartOutcome]) -> list[dict[str, Any]]:
    causes = {start.name: start.why for start in starts if (start.kind, start.state) == ("server", "cannot start")}
    return [{**row, "problem": row["problem"] or causes.get(row["name"], "")} for row in rows]


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"error: {error}" for error in found["errors"])
    if "packs" in found:
        yield from _details(found)
    yield "ok" if found["ok"] else "not ok"


def _details(found: Mapping[str, Any]) -> Iterator[str]:
    from ot.cli.diagnosis.starts import AT_FIRST_CALL
    from ot.cli.servers import server_lines

    yield from (f"warning: {text}" for text in found["warnings"])
    yield f"configuration: {', '.join(found['files']) or 'none, all settings are defaults'}"
    yield f"project: {found['project']}"
    yield f"{found['packs']} packs, {found['tools']} tools; programs run in the {found['engine']} engine"
    yield f"started: {', '.join(row['name'] for row in found['starts'] if row['state'] == 'started') or 'nothing'}"
    left = [row for row in found["starts"] if row["state"] in ("not started", "login needed")]
    if later := [row["name"] for row in left if row["why"] == AT_FIRST_CALL]:
        yield f"installed at their first call: {', '.join(later)} (in advance: onetool prefetch)"
    left = [row for row in left if row["why"] != AT_FIRST_CALL]
    yield from (f"{row['state']}: {row['kind']} {row['name']}: {row['why']}" for row in left)
    yield f"servers: {len(found['servers'])}"
    yield from (f"  {line}" for line in server_lines(found["servers"]))
    yield "policy: a tool that no pattern names runs when it is read-only, other tools of servers ask"
    yield from _list_lines("", found["policy"])
    for name, lists in found["policy"].get("groups", {}).items():
        yield from _list_lines(f"members of {name}: ", lists)


def _list_lines(whose: str, lists: Mapping[str, Any]) -> Iterator[str]:
    named = ((action, lists[action]) for action in ("allow", "ask", "deny"))
    yield from (f"  {whose}{action}: {', '.join(patterns)}" for action, patterns in named if patterns)
