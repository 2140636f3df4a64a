"""onetool doctor: what works here, what does not, and how to mend it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.terminal import Styled, echo

if TYPE_CHECKING:
    from ot.cli.diagnosis.finding import Finding

MARKS = {"ok": ("✓", typer.colors.GREEN), "note": ("!", typer.colors.YELLOW), "problem": ("✗", typer.colors.RED)}


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "doctor",
        short_help="Look at everything a run needs, and say what to do.",
        epilog="Example: onetool doctor --fix",
    )(doctor)


def doctor(
    fix: Annotated[
        bool, typer.Option("--fix", help="Mend what is safe to: modes of secrets, orphans, leftovers.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Look at engines, secrets and leftovers, start every pack and server, and say what to do about what is wrong."""
    from ot.cli.event_loop import run_async

    found = run_async(_examine())
    mended = {id(finding): _mended(finding) for finding in found if fix and finding.mend}
    left = [finding for finding in found if finding.state == "problem" and not mended.get(id(finding), ("", ""))[0]]
    if as_json:
        rows = [_row(finding, *mended.get(id(finding), ("", ""))) for finding in found]
        echo(json.dumps({"ok": not left, "findings": rows}))
    else:
        _show(found, mended)
        echo("all is well" if not left else f"{len(left)} problem{'s' * (len(left) > 1)}")
    raise typer.Exit(1 if left else 0)


async def _examine() -> list[Finding]:
    from ot.app import App
    from ot.cli.diagnosis.engines import engine_findings
    from ot.cli.diagnosis.finding import Finding
    from ot.cli.diagnosis.leftovers import leftover_findings
    from ot.cli.diagnosis.orphans import orphan_findings
    from ot.cli.diagnosis.setup import (
        default_secrets,
        pack_findings,
        program_findings,
        secrets_findings,
        server_findings,
        trust_findings,
        uv_findings,
    )
    from ot.cli.diagnosis.starts import start_all
    from ot.config.models import Engines
    from ot.config.paths import Paths
    from ot.errors import OneToolError

    paths = Paths.find()
    # Before anything is started, so that what this command starts itself is not among them.
    processes = [*orphan_findings()]
    try:
        app = App(paths)
    except OneToolError as error:
        wrong = Finding("configuration", "problem", str(error))
        secrets = secrets_findings(default_secrets(paths), paths.project_dir)
        return [wrong, *secrets, *trust_findings(paths), *await engine_findings(Engines()), *processes]
    try:
        starts = await start_all(app)
        loaded = app.picture.loaded
        files = ", ".join(map(str, loaded.files)) or "none, all settings are defaults"
        return [
            Finding("configuration", "ok", files),
            *(
                Finding("configuration", "note", warning)
                for warning in loaded.warnings
                if "onetool trust" not in warning
            ),
            *secrets_findings({*default_secrets(paths), *loaded.secret_files}, paths.project_dir),
            *trust_findings(paths),
            *await engine_findings(loaded.config.engines),
            *await program_findings(app),
            *uv_findings(needed=bool(app.picture.workers)),
            *pack_findings(starts),
            *server_findings(app, starts),
            *processes,
            *leftover_findings(app),
        ]
    finally:
        await app.aclose()


def _mended(finding: Finding) -> tuple[str, str]:
    """Return what was done, or why it could not be."""
    assert finding.mend is not None
    try:
        return finding.mend(), ""
    except OSError as error:
        return "", f"could not be mended: {error}"


def _row(finding: Finding, done: str, why_not: str) -> dict[str, Any]:
    row = {"area": finding.area, "state": finding.state, "text": finding.text, "advice": finding.advice}
    return {key: value for key, value in {**row, "fixed": done, "not_fixed": why_not}.items() if value}


def _show(found: list[Finding], mended: dict[int, tuple[str, str]]) -> None:
    for area in dict.fromkeys(finding.area for finding in found):
        echo(Styled(area, bold=True))
        for finding in (finding for finding in found if finding.area == area):
            mark, colour = MARKS[finding.state]
            echo("  ", Styled(mark, fg=colour), f" {_indented(finding.text)}")
            done, why_not = mended.get(id(finding), ("", ""))
            if after := done or why_not or finding.advice:
                echo("      ", Styled("→", dim=True), f" {_indented(after)}")


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")
