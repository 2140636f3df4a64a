"""onetool doctor: what works here, what does not, and how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import FAILURE, OK
from ot.cli.terminal import Styled, echo, echo_json
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.cli.diagnosis import Finding

MARKS = {"ok": ("✓", typer.colors.GREEN), "note": ("!", typer.colors.YELLOW), "problem": ("✗", typer.colors.RED)}


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Fix what is safe: modes of secrets, orphans, leftovers.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check engines, secrets, the shared server and leftovers, start every pack and server, and say what to do."""
    from ot.cli.terminal.event_loop import run_async

    found = [
        (finding, *(_try_fix(finding.fix) if fix and finding.fix else ("", ""))) for finding in run_async(_examine())
    ]
    left = sum(finding.state == "problem" and not done for finding, done, _ in found)
    if as_json:
        echo_json({"ok": not left, "findings": [_row(*one) for one in found]})
    else:
        _show(found)
        echo("all is well" if not left else f"{left} problem{'s' * (left > 1)}")
    raise typer.Exit(FAILURE if left else OK)


async def _examine() -> list[Finding]:
    from ot.cli.diagnosis import Finding, setup
    from ot.cli.diagnosis.engines import engine_findings
    from ot.cli.diagnosis.leftovers import leftover_findings, orphan_findings
    from ot.cli.diagnosis.setup import ledger_findings, plugin_findings, sharing_findings
    from ot.cli.diagnosis.starts import start_all
    from ot.config.models import Engines
    from ot.config.paths import Paths
    from ot.errors import OneToolError
    from ot.workspace import Workspace

    paths = Paths.find()
    # Before anything is started, so that what this command starts itself is not among them.
    processes = [*orphan_findings()]
    try:
        app = Workspace.alone(paths)
    except OneToolError as error:
        wrong = Finding("configuration", "problem", str(error))
        secrets = setup.secrets_findings(setup.default_secrets(paths), paths.project_dir)
        return [
            wrong,
            *secrets,
            *setup.trust_findings(paths),
            *await engine_findings(Engines()),
            *sharing_findings(),
            *processes,
        ]
    try:
        starts = await start_all(app)
        loaded = app.picture.loaded
        files = ", ".join(map(str, loaded.files)) or "none, all settings are defaults"
        return [
            Finding("configuration", "ok", files),
            *(Finding("configuration", "note", text) for text in loaded.warnings if "onetool trust" not in text),
            *setup.migration_findings(paths),
            *setup.secrets_findings({*setup.default_secrets(paths), *loaded.secret_files}, paths.project_dir),
            *setup.trust_findings(paths),
            *setup.client_findings(paths),
            *await engine_findings(loaded.config.engines),
            *await setup.program_findings(app),
            *ledger_findings(loaded, paths),
            *await plugin_findings(loaded),
            *setup.uv_findings(needed=bool(app.picture.workers)),
            *setup.pack_findings(starts),
            *setup.disabled_findings(app),
            *(Finding("packs", "note", text) for text in app.picture.hidden_packs()),
            *setup.need_findings(app),
            *setup.server_findings(app, starts),
            *sharing_findings(loaded.config.daemon),
            *processes,
            *leftover_findings(app),
        ]
    finally:
        await app.aclose()


def _try_fix(fix: Callable[[], str]) -> tuple[str, str]:
    """Return what was done, or why it could not be."""
    try:
        return fix(), ""
    except OSError as error:
        return "", f"could not be fixed: {error}"


def _row(finding: Finding, done: str, why_not: str) -> dict[str, Any]:
    row = {"area": finding.area, "state": finding.state, "text": finding.text, "advice": finding.advice}
    return {key: value for key, value in {**row, "fixed": done, "not_fixed": why_not}.items() if value}


def _show(found: Sequence[tuple[Finding, str, str]]) -> None:
    for area in dict.fromkeys(finding.area for finding, _, _ in found):
        echo(Styled(area, bold=True))
        for finding, done, why_not in (one for one in found if one[0].area == area):
            mark, colour = MARKS[finding.state]
            echo("  ", Styled(mark, fg=colour), f" {_indent(finding.text)}")
            if after := done or why_not or finding.advice:
                echo("      ", Styled("→", dim=True), f" {_indent(after)}")


def _indent(text: str) -> str:
    return text.replace("\n", "\n    ")
