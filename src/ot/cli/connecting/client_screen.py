"""What connect and disconnect say: what was done, what to paste, and what a client's servers cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ot.cli.exit_codes import USAGE
from ot.cli.terminal import Screen, echo, echo_json, fail

if TYPE_CHECKING:
    from ot.cli.diagnosis.starts import StartOutcome
    from ot.config.clients.connection import ClientChange, EntryWanted
    from ot.config.clients.known_clients import Client
    from ot.config.clients.server_entry import Surroundings
    from ot.config.paths import Paths


WHAT_IS_SHARED = (
    "With serve --shared, your clients share one server, which starts with the first of them. It runs outside of any "
    "sandbox that a client puts around its own processes; --alone gives a client its own server."
)


@dataclass(frozen=True)
class ClientPlan:
    """The change of one client's file, and what was in it."""

    change: ClientChange
    servers: tuple[str, ...]
    """Those in the file, OneTool aside."""
    held: Mapping[str, str]
    """Those that OneTool has too, with their names there."""
    was_entered: bool
    stays: Mapping[str, str]
    """Why servers stay in the client, by their names there."""


def describe_change(
    change: ClientChange, done: str, backup: Path | None, diff: list[str], *, written: bool
) -> dict[str, Any]:
    """Return *done* as data, for a program."""
    return {
        "client": change.client.name,
        "file": str(change.file.path),
        "links_to": str(change.file.real) if change.file.path.is_symlink() else None,
        "name": change.name,
        "done": done if written else "nothing",
        "changed": change.changes,
        "taken_out": list(change.taken_out),
        "put_back": list(change.put_back),
        "backup": str(backup) if backup else None,
        "diff": diff,
    }


def tell_what_is_shared(changes: Sequence[ClientChange]) -> None:
    """Say what sharing means, where *changes* would begin it."""
    from ot.config.clients.launcher import SHARED

    if any(change.changes and SHARED in change.entry.get("args", ()) for change in changes):
        echo(WHAT_IS_SHARED, err=True)


def sentence(told: Mapping[str, Any], change: ClientChange) -> str:
    """Say what was done and what comes next, for a person."""
    client = change.client
    link = f" (a link to {told['links_to']})" if told["links_to"] else ""
    place = f"{told['file']}{link}"
    if not told["changed"]:
        return f"{client.title}: nothing to do in {place}."
    if told["done"] == "nothing":
        return f"{client.title}: nothing was written to {place}."
    backup = f"; backup: {told['backup']}" if told["backup"] else ""
    if told["done"] == "disconnected":
        return f"{client.title}: disconnected in {place}{backup}."
    placed = client.has_project or "env" in change.entry
    elsewhere = "" if placed else f" {client.title} has no project directory: choose one with --cwd."
    return f"{client.title}: connected in {place}{backup}. Next: {client.afterwards}.{elsewhere}"


# ---------------------------------------------------------------- servers that were started


def why_it_stays(client: Client, start: StartOutcome) -> str:
    """Return why a server did not start, and what takes it out of the client later, on one line."""
    why = " ".join(start.why.removeprefix(f"servers.{start.name}.").split()).rstrip(".")
    if start.state == "login needed":
        why = "it wants a login"
    first = "once it starts here," if start.advice.startswith("change its settings") else f"{start.advice} and"
    return f"{why}; {first} run 'onetool connect {client.name} --take-out'"


def stays_line(client: Client, name: str, why: str) -> str:
    """Return a line that says why a server stays in a client."""
    from ot.visible_text import printable

    return printable(f"{name} stays in {client.title}: {why}")


def start_row(start: StartOutcome, paths: Paths) -> dict[str, Any]:
    """Return how a server started and what it offers, for a program; tokens are an estimate."""
    from ot.cli.connecting.client_cost import cost_of_servers

    cost = cost_of_servers([start.name], {start.name: start.name}, paths) if start.state == "started" else None
    offered = {"tools": cost.tools, "estimated_tokens": cost.tokens} if cost else {}
    return {"server": start.name, "state": start.state, **offered, **({"why": start.why} if start.why else {})}


def show_starts(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a table of what the servers offer that started."""
    from rich.table import Column

    started = [row for row in rows if row["state"] == "started"]
    if started:
        columns = [Column("server"), *(Column(head, justify="right") for head in ("tools", "tokens"))]
        lines = [(row["server"], str(row["tools"]), f"{row['estimated_tokens']:,}") for row in started]
        Screen().table(columns, lines)


# ---------------------------------------------------------------- what to paste


def show_pasted(
    names: Sequence[str], around: Surroundings, wanted: EntryWanted, *, as_json: bool, only_link: bool
) -> None:
    """Print the block to paste, or the link, of each client; where it goes is said on standard error."""
    from ot.config.clients.known_clients import CLIENTS

    blocks = [_build_paste(CLIENTS[name], around, wanted) for name in names]
    if only_link and (without := [block["client"] for block in blocks if not block["link"]]):
        fail(f"{', '.join(without)} has no install link: use onetool connect, or --print", USAGE)
    if as_json:
        echo_json(blocks)
        return
    for block in blocks:
        if only_link:
            echo(block["link"])
            continue
        echo(f"Paste this into {block['file']}:", err=True)
        echo(block["block"].rstrip("\n"))
        if block["link"]:
            echo(f"or open this link: {block['link']}", err=True)


def _build_paste(client: Client, around: Surroundings, wanted: EntryWanted) -> dict[str, Any]:
    from ot.config.clients.connection import NAME
    from ot.config.clients.json_text import JsonText
    from ot.config.clients.toml_text import TomlText

    place, name = client.own_file(around), wanted.name or NAME
    entry = client.own_entry(wanted.command, wanted.env)
    empty = TomlText("") if place.file.suffix == ".toml" else JsonText("")
    link = client.link(name, entry) if client.link else None
    block = empty.put((place.key, name), entry).text
    return {"client": client.name, "file": str(place.file), "block": block, "link": link}


# ---------------------------------------------------------------- what it costs


def cost_rows(plans: Sequence[ClientPlan], paths: Paths) -> list[dict[str, Any]]:
    """Return the cost of each client's servers, before the change and after it."""
    from ot.cli.connecting.client_cost import ContextCost, cost_of_servers, own_cost

    own = own_cost(paths) if plans else ContextCost()
    rows: list[dict[str, Any]] = []
    for plan in plans:
        left = list(plan.servers)
        for name in plan.change.taken_out:
            left.remove(name)
        before, after = (cost_of_servers(names, plan.held, paths) for names in (plan.servers, left))
        before += own if plan.was_entered else ContextCost()
        row = {"client": plan.change.client.name, "before": before.as_json(), "after": (after + own).as_json()}
        rows.append(row)
    return rows


def show_costs(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a table of *rows*, and what its figures do not say."""
    from rich.table import Column

    if not rows:
        return
    columns = [Column("client"), *(Column(head, justify="right") for head in ("servers", "tools", "tokens"))]
    lines: list[Sequence[str]] = []
    for row in rows:
        for when in ("before", "after"):
            lines.append((f"{row['client']} {when}", str(row[when]["servers"]), *_figures(row[when])))
    Screen().table(columns, lines)
    echo(
        "Tokens are estimated at 4 characters each, with every definition sent; some clients load them on demand.",
        err=True,
    )
    if unknown := sorted({name for row in rows for name in (*row["before"]["unknown"], *row["after"]["unknown"])}):
        echo(f"Not counted, because OneTool has not listed their tools yet: {json.dumps(unknown)[1:-1]}.", err=True)


def _figures(cost: Mapping[str, Any]) -> tuple[str, str]:
    """Return tools and tokens; a plus stands for the servers that are not counted."""
    if cost["unknown"] and not cost["tools"]:
        return "unknown", "unknown"
    more = "+" if cost["unknown"] else ""
    return f"{cost['tools']}{more}", f"{cost['estimated_tokens']:,}{more}"
