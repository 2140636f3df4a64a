"""onetool prefetch: the packages of packs, installed before their first call."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import FAILURE, NOT_FOUND, OK
from ot.cli.terminal import echo_either, echo_progress
from ot.cli.terminal.completion import complete_packs
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.workers.spec import WorkerSpec
    from ot.workspace import Workspace


def prefetch(
    packs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PACK",
            help="Install these packs; without any, all that have packages.",
            autocompletion=complete_packs,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Install what packs need, before this machine goes offline.

    Otherwise each is installed at its first call. What is there already stays as it is.
    """
    from ot.cli.terminal.event_loop import run_async

    rows = run_async(_prefetch(packs or []))
    echo_either(as_json, {"packs": rows}, _lines(rows))
    problems = [row for row in rows if row["problem"]]
    raise typer.Exit(OK if not problems else NOT_FOUND if all(row["unknown"] for row in problems) else FAILURE)


async def _prefetch(names: Sequence[str]) -> list[dict[str, Any]]:
    from ot.config.paths import Paths
    from ot.workspace import Workspace

    app = Workspace.alone(Paths.find())
    try:
        specs = app.picture.workers
        return [await _row(app, name, specs.get(name)) for name in names or specs]
    finally:
        await app.aclose()


async def _row(app: Workspace, name: str, spec: WorkerSpec | None) -> dict[str, Any]:
    from ot.errors import ToolUnavailable

    begun, problem, place = time.monotonic(), "", None
    if spec is None:
        registry = app.picture.registry
        problem = "" if name in registry.packs else str(registry.unknown(name))
    else:
        try:
            place = (await app.host.workers.install(spec, echo_progress)).python.parent.parent
        except ToolUnavailable as error:
            problem = app.picture.loaded.secrets.redact(error.why)
    size = _megabytes(place) if place and (place / "pyvenv.cfg").is_file() else None
    seconds = round(time.monotonic() - begun, 1)
    unknown = spec is None and bool(problem)
    return {"pack": name, "seconds": seconds, "megabytes": size, "problem": problem, "unknown": unknown}


def _megabytes(place: Path) -> float:
    return round(sum(file.lstat().st_size for file in place.rglob("*") if file.is_file()) / 1e6, 1)


def _lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row["problem"]:
            yield f"{row['pack']}: {row['problem']}"
        elif row["megabytes"] is None:
            yield f"{row['pack']}: needs no packages"
        else:
            yield f"{row['pack']}: installed, {row['megabytes']:g} MB ({row['seconds']:g} s)"
