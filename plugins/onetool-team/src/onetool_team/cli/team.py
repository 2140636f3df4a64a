"""onetool team: what who operates a team's server asks of it, and has it do."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import BACKEND, DENIED, FAILURE, NOT_FOUND
from ot.cli.runs import KnownRun, list_lines, run_row
from ot.cli.terminal import columns, confirm, echo, echo_either, fail, pluralize
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from onetool_team.operating.kept_data import KeptThing
    from onetool_team.operating.operator import Operator
    from ot.config.load import Loaded
    from ot.config.paths import Paths
    from ot.ledger.background_run import RunStatus

Principal = Annotated[
    str,
    typer.Argument(metavar="PRINCIPAL", help="Who: token|NAME, ISSUER|SUBJECT, or what stands after | alone."),
]
SHORT = 60


def people(as_json: AsJson = False) -> None:
    """Show who has used the server, who was seen last first: runs, characters answered, bytes of files."""
    rows = _do(lambda operator: operator.people())
    head = ["principal", "last seen", "first seen", "runs", "last minute", "under way", "answered", "bytes"]
    cells = [
        [
            row["principal"],
            _time(row["last"]),
            _time(row["first"]),
            *(f"{row[name]:,}" for name in ("runs", "last_minute", "under_way", "chars", "bytes")),
        ]
        for row in rows
    ]
    echo_either(as_json, {"people": rows}, columns([head, *cells]) if cells else [])
    if not rows and not as_json:
        echo("Nobody has run a program here yet.", err=True)


def runs(
    id: Annotated[str, typer.Argument(metavar="[ID]", help="One run: all that is known of it.")] = "",
    of: Annotated[str, typer.Option("--of", metavar="PRINCIPAL", help="Only runs of this person.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show runs under way and runs in the background, of everybody or of one person."""
    if id:
        _show_run(id, as_json)
        return

    async def read(operator: Operator) -> tuple[list[dict[str, Any]], list[RunStatus], set[str]]:
        principal = await operator.resolve(of) if of else ""
        under_way = [run for run in await operator.under_way() if principal in ("", run["principal"])]
        left = set(await operator.ledger.list_left_behind())
        return under_way, await operator.background(principal), left

    under_way, background, left = _do(read)
    rows = [run_row(one, one.run.id in left) | {"principal": one.run.principal} for one in background]
    now = [
        [run["id"], run["principal"], f"{time.time() - run['since']:.1f} s", run["program"][:SHORT]]
        for run in under_way
    ]
    lines = ["Under way:", *columns([["id", "principal", "since", "program"], *now])] if now else []
    whose = {one.run.id: one.run.principal for one in background}
    listed = list_lines(background)
    lines += ["In the background:", *_with_names(listed, whose)] if listed else []
    echo_either(as_json, {"under_way": under_way, "background": rows}, lines)
    if not lines and not as_json:
        echo("No runs are under way, and none is kept in the background.", err=True)


def _with_names(lines: list[str], whose: dict[str, str]) -> list[str]:
    names = [["principal"], *([whose.get(line.split()[0], "")] for line in lines[1:])]
    return columns([[*name, line] for name, line in zip(names, lines, strict=True)])


def _show_run(id: str, as_json: bool) -> None:
    async def read(operator: Operator) -> tuple[str, KnownRun | None, list[dict[str, Any]]]:
        under_way = [run for run in await operator.under_way() if run["id"] == id]
        principal = await operator.whose(id) or next((run["principal"] for run in under_way), "")
        if not principal:
            return "", None, []
        ledger = operator.ledger
        status, effects = await ledger.status(principal, id), await ledger.of_run(principal, id)
        left = status is not None and id in await ledger.list_left_behind()
        return principal, KnownRun(id, status, effects, left), under_way

    principal, known, under_way = _do(read)
    if known is None:
        fail(f"nothing is known of '{id}': no run under way or in the background has this id", NOT_FOUND)
    told = known.as_json() | {"principal": principal, "under_way": bool(under_way)}
    now = [f"Under way: {under_way[0]['program']}"] if under_way else []
    lines = [f"Of {principal}.", *now, *known.state_lines(), *known.effect_lines(), *known.reply_lines()]
    echo_either(as_json, told, lines)


def cancel(
    id: Annotated[str, typer.Argument(metavar="ID", help="The run's id, as 'team runs' shows it.")],
    as_json: AsJson = False,
) -> None:
    """Stop a run of anybody, under way or in the background: what it has done stays done."""
    principal = _do(lambda operator: operator.cancel(id))
    if principal is None:
        fail(f"there is no run '{id}' that has not ended: onetool team runs", NOT_FOUND)
    echo_either(as_json, {"id": id, "principal": principal}, [f"Run {id} of {principal} is asked to stop."])


def logout(
    principal: Principal,
    server: Annotated[str, typer.Argument(metavar="[SERVER]", help="Only the login at this server.")] = "",
    as_json: AsJson = False,
) -> None:
    """Revoke a person's logins at remote servers, and ask the person again about tools that were always allowed."""

    async def end(operator: Operator) -> dict[str, Any]:
        if server and server not in operator.logins.servers:
            known = ", ".join(operator.logins.servers) or "at no server"
            fail(f"people do not log in at '{server}': {known}", NOT_FOUND)
        return await operator.log_out(await operator.resolve(principal), server)

    told = _do(end)
    if not told["ended"] and not told["asked_again"]:
        fail(f"{told['principal']} has no login there, and has allowed nothing for good", NOT_FOUND)
    lines = [
        f"{name}: {f'forgotten, but not revoked: {why}' if why else 'revoked and forgotten'}"
        for name, why in told["ended"].items()
    ]
    lines += [f"{pattern}: asked about again" for pattern in told["asked_again"]]
    echo_either(as_json, told, lines)


def forget(
    principal: Principal,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what is kept, and where.")] = False,
    audit: Annotated[bool, typer.Option("--audit", help="Erase the lines of the audit log, too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """End all that a person does, and erase all that is kept of the person; the audit log stays unless you say so."""
    who, found = _do(lambda operator: _find(operator, principal))
    if dry_run:
        echo_either(as_json, {"principal": who, "kept": [asdict(kept) for kept in found]}, _kept_lines(found))
        if not found and not as_json:
            echo(f"Nothing is kept of {who}.", err=True)
        return
    if not found:
        fail(f"nothing is kept of {who}: onetool team people", NOT_FOUND)
    if not yes and not confirm(f"Erase {pluralize(sum(kept.count for kept in found), 'thing')} of {who}?", "erase"):
        raise typer.Exit(DENIED)
    left = _do(lambda operator: operator.forget(who, evidence=audit))
    stays = [kept for kept in left if kept.store == "audit"]
    failed = [kept for kept in left if kept not in stays]
    told = {"principal": who, "erased": [asdict(kept) for kept in found if kept not in left]}
    said = ["Erased:", *_kept_lines([kept for kept in found if kept not in left])]
    said += ["KeptThing, as the audit log is evidence (--audit erases it):", *_kept_lines(stays)] if stays else []
    said += ["Take the person's token away, if that is not done yet: whoever has one begins anew at the next request."]
    echo_either(as_json, told | {"kept": [asdict(kept) for kept in left]}, said)
    if failed:
        fail(f"something is left of {who}: {', '.join(kept.where for kept in failed)}. Run it again", FAILURE)


async def _find(operator: Operator, name: str) -> tuple[str, list[KeptThing]]:
    principal = await operator.resolve(name)
    return principal, await operator.find(principal)


def _kept_lines(found: list[KeptThing]) -> list[str]:
    cells = [[one.store, f"{one.count:,}", f"{one.size:,} bytes" if one.size else "", one.where] for one in found]
    return columns(cells) if cells else []


def quota(principal: Principal, as_json: AsJson = False) -> None:
    """Show how much a person may do, and does now."""

    async def read(operator: Operator) -> dict[str, Any]:
        return await operator.quota(await operator.resolve(principal))

    told = _do(read)
    lines = columns([[name, f"{use:,} of {most:,}"] for name, (use, most) in told["used"].items()])
    echo_either(as_json, told, [f"{told['principal']}:", *lines])


def status(as_json: AsJson = False) -> None:
    """Show replicas, their settings, workers, stores, and if the settings are valid; exits with 0 if all is well."""
    from ot.cli.terminal.event_loop import run_async
    from ot.errors import ConfigError

    told: dict[str, Any] = {"config": "", "replicas": [], "workers": [], "ledger": {}}
    try:
        told |= _do(lambda operator: operator.status())
    except ConfigError as error:
        told |= {"config": str(error), "replicas": run_async(_ask_here())}
    ledger, workers = told["ledger"], told["workers"]
    shown = [
        [one["host"], one["state"], pluralize(one["runs"], "run"), pluralize(one["workspaces"], "workspace"),
         one["release"], f"since {_time(one['since'])}", *_settings_cells(one.get("settings"))]
        for one in told["replicas"]
    ]  # fmt: skip
    refused = {one["settings"]["why_not_newer"] for one in told["replicas"] if one.get("settings")} - {""}
    seen = [[one["name"], f"seen {_time(one['seen'])}"] for one in workers]
    lines = [f"configuration: {told['config'] or 'valid'}", f"replicas: {len(shown)}"]
    lines += [f"  {line}" for line in (columns(shown) if shown else [])]
    lines += [f"  newer settings are not used: {why}" for why in sorted(refused)]
    lines += [f"workers: {len(seen)}", *(f"  {line}" for line in (columns(seen) if seen else []))]
    lines += [f"ledger: {', '.join(map(str, ledger.values()))}"] if ledger else []
    echo_either(as_json, told, lines)
    if told["config"]:
        raise typer.Exit(FAILURE)
    if ledger.get("status") == "unreachable" or not shown:
        raise typer.Exit(BACKEND)


def _settings_cells(used: Mapping[str, Any] | None) -> list[str]:
    """Return which settings a replica uses; one of an earlier release does not say."""
    return [f"settings {used['hash']} since {_time(used['since'])}"] if used else [""]


async def _ask_here() -> list[dict[str, Any]]:
    """Return how the server of this machine is, which a configuration that cannot be read does not stop."""
    from onetool_team.operating.replicas import ThisMachine
    from onetool_team.state.shared_state import StateUnavailable
    from ot.config.paths import Paths

    try:
        answers = await ThisMachine(Paths.find().global_dir).ask("status")
    except StateUnavailable:
        return []
    return [{"name": name, **answer} for name, answer in answers.items()]


def hash_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who: token|NAME or ISSUER|SUBJECT.")],
    as_json: AsJson = False,
) -> None:
    """Show what stands for a person in traces, in the shared stores and as the name of a directory."""

    async def read(operator: Operator) -> dict[str, str]:
        return operator.names_of(await operator.resolve(name))

    told = _do(read)
    echo_either(as_json, told, columns([[kind, value] for kind, value in told.items()]))


# ---------------------------------------------------------------- the stores


def _do[T](work: Callable[[Operator], Awaitable[T]]) -> T:
    """Return what *work* does with the stores that the operator's own configuration names."""
    from onetool_team.state.shared_state import StateUnavailable
    from ot.cli.terminal.event_loop import run_async

    try:
        return run_async(_operate(work))
    except StateUnavailable as error:
        fail(f"what replicas share cannot be reached: {error}", BACKEND)
    except OSError as error:
        fail(str(error), BACKEND)


async def _operate[T](work: Callable[[Operator], Awaitable[T]]) -> T:
    from onetool_team.operating.open_operator import open_operator

    loaded, paths = _load()
    async with AsyncExitStack() as stack:
        return await work(await open_operator(loaded, paths, stack))


def _load() -> tuple[Loaded, Paths]:
    from dataclasses import replace

    from ot.config.load import load_config
    from ot.config.paths import Paths
    from ot.config.trust import Trust

    # The operator's own settings: those of a directory are nobody's on a team's server.
    paths = replace(Paths.find(), project_dir=None, ignored="")
    return load_config(paths, Trust(paths.global_dir)), paths


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
