"""onetool check: is the configuration usable, and does a program run?"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from ot.cli.terminal import echo


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", epilog="Example: onetool check --json")(check)


def check(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Load everything, run a program, and say what is wrong."""
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
    from ot.cli.servers import server_rows
    from ot.config.paths import Paths
    from ot.errors import OneToolError

    try:
        app = App(Paths.find())
    except OneToolError as error:
        return {"ok": False, "errors": [str(error)]}
    try:
        packs = app.picture.registry.packs
        # A server that was not asked yet is no trouble; one that cannot be started is told of in its own line.
        broken = {name: pack.broken for name, pack in packs.items() if pack.source != "proxy" and pack.broken}
        reply = await app.picture.runner.run("sum(range(10))", caller=app.caller)
    finally:
        await app.aclose()
    loaded = app.picture.loaded
    policy = loaded.config.policy
    errors = [f"pack {name}: {why}" for name, why in broken.items()]
    errors += [] if reply.texts == ("45",) else [f"a program does not run: {reply.texts[-1]}"]
    return {
        "ok": not errors,
        "files": [str(file) for file in loaded.files],
        "project": loaded.project_state,
        "packs": len(packs),
        "tools": len(app.tool_names()),
        "engine": app.engine.name,
        "servers": server_rows(loaded, app.paths),
        "policy": {action: list(getattr(policy, action)) for action in ("allow", "ask", "deny")},
        "warnings": list(loaded.warnings),
        "errors": errors,
    }


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
            *_servers_and_policy(found),
        ]
    return [*lines, "ok" if found["ok"] else "not ok"]
