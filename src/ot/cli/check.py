"""onetool check: is the configuration usable, does everything start, and does a program run?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.terminal import echo

if TYPE_CHECKING:
    from ot.cli.diagnosis.starts import Start


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "check",
        short_help="Start every pack and server, and say what is wrong.",
        epilog="Example: onetool check --json",
    )(check)


def check(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Start every pack and server, run a program, and say what is wrong."""
    from ot.cli.event_loop import run_async

    found = run_async(_check())
    if as_json:
        echo(json.dumps(found))
    else:
        for line in _lines(found):
            echo(line)
    raise typer.Exit(0 if found["ok"] else 1)


async def _check() -> dict[str, Any]:
    from ot.app import App
    from ot.cli.diagnosis.starts import start_all
    from ot.cli.servers import server_rows
    from ot.config.paths import Paths
    from ot.errors import OneToolError

    try:
        app = App(Paths.find())
    except OneToolError as error:
        return {"ok": False, "errors": [str(error)]}
    try:
        starts = await start_all(app)
        reply = await app.picture.runner.run("sum(range(10))", caller=app.caller)
    finally:
        await app.aclose()
    loaded = app.picture.loaded
    policy = loaded.config.policy
    errors = [_error(start) for start in starts if start.state == "cannot start"]
    errors += [] if reply.texts == ("45",) else [f"a program does not run: {reply.texts[-1]}"]
    return {
        "ok": not errors,
        "files": [str(file) for file in loaded.files],
        "project": loaded.project_state,
        "packs": len(app.picture.registry.packs),
        "tools": len(app.tool_names()),
        "engine": app.engine.name,
        "starts": [start.row for start in starts],
        "servers": _with_causes(server_rows(loaded, app.paths), starts),
        "policy": {action: list(getattr(policy, action)) for action in ("allow", "ask", "deny")},
        "warnings": list(loaded.warnings),
        "errors": errors,
    }


def _error(start: Start) -> str:
    return f"{start.kind} {start.name} cannot start: {start.why.rstrip('.')} ({start.advice})"


def _with_causes(rows: list[dict[str, Any]], starts: list[Start]) -> list[dict[str, Any]]:
    causes = {start.name: start.why for start in starts if (start.kind, start.state) == ("server", "cannot start")}
    return [{**row, "problem": row["problem"] or causes.get(row["name"], "")} for row in rows]


def _start_lines(starts: list[dict[str, Any]]) -> list[str]:
    started = [row["name"] for row in starts if row["state"] == "started"]
    left = [
        f"not started: {row['kind']} {row['name']}: {row['why']}" for row in starts if row["state"] == "not started"
    ]
    return [f"started: {', '.join(started) or 'nothing'}", *left]


def _servers_and_policy(found: dict[str, Any]) -> list[str]:
    from ot.cli.servers import server_lines

    rows = server_lines(found["servers"])
    lists = [f"  {name}: {', '.join(patterns)}" for name, patterns in found["policy"].items() if patterns]
    default = "a tool that no pattern names runs when it is read-only, other tools of servers ask"
    return [f"servers: {len(found['servers'])}", *(f"  {line}" for line in rows), f"policy: {default}", *lists]


def _lines(found: dict[str, Any]) -> list[str]:
    lines = [f"error: {error}" for error in found["errors"]] + [
        f"warning: {text}" for text in found.get("warnings", [])
    ]
    if "packs" in found:
        files = ", ".join(found["files"]) or "none, all settings are defaults"
        lines += [
            f"configuration: {files}",
            f"project: {found['project']}",
            f"{found['packs']} packs, {found['tools']} tools; programs run in the {found['engine']} engine",
            *_start_lines(found["starts"]),
            *_servers_and_policy(found),
        ]
    return [*lines, "ok" if found["ok"] else "not ok"]
