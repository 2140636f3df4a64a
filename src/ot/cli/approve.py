"""onetool approve: what a proxied server changed, and the user's word that it may be used."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import NOT_FOUND, OK
from ot.cli.terminal import echo, echo_json, fail
from ot.cli.terminal.completion import complete_servers
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.proxied.pin_books import Change, PinBook

WIDTH = 160


def approve(
    what: Annotated[
        str,
        typer.Argument(
            help="A server, or pack.tool; without it, changes are only shown.", autocompletion=complete_servers
        ),
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="Approve the changes of every server.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what proxied servers changed since they were approved, and approve it."""
    from ot.config.paths import Paths
    from ot.proxied.definition_pins import DefinitionPins
    from ot.proxied.pin_books import open_pins

    pins = DefinitionPins(open_pins(Paths.find()))
    books = pins.books()
    found = [(book, changes) for book in books if (changes := _choose_changes(book, what))]
    if what and not found:
        known = any(what.partition(".")[0] in (book.server, *book.packs) for book in books)
        why = "nothing of it waits for approval" if known else "no such server was used yet"
        fail(f"{what}: {why}", OK if known else NOT_FOUND)
    approving = bool(what) or everything
    changes = [change for _, some in found for change in some]
    # Shown first: what could not be shown is not approved.
    if as_json:
        echo_json({"approved": approving, "changes": [asdict(change) for change in changes]})
    else:
        _print(found)
    for book, some in found if approving else ():
        pins.approve(book, _tools(book, some))
    if not as_json:
        _conclude(len(changes), approving)


def _choose_changes(book: PinBook, what: str) -> list[Change]:
    """Return the changes of *book* that *what* names."""
    from ot.registry.clean_text import identifier

    changes = book.pending_changes()
    if what in ("", book.server):
        return changes
    pack, _, name = what.partition(".")
    if pack not in (book.server, *book.packs):
        return []
    return [change for change in changes if name in (change.tool, identifier(change.tool) if change.tool else "*")]


def _tools(book: PinBook, changes: Sequence[Change]) -> list[str] | None:
    """Return the tools to approve, or nothing for all: a server that moved is approved as a whole."""
    if len(changes) == len(book.pending_changes()):
        return None
    return [change.tool for change in changes if change.tool]


def _print(found: Sequence[tuple[PinBook, Sequence[Change]]]) -> None:
    from ot.visible_text import printable

    for book, change in ((book, change) for book, changes in found for change in changes):
        echo(printable(f"{change}{f'  (of {book.owner})' if book.owner else ''}"))
        for line in _diff(change.old or {}, change.new or {}):
            echo(f"  {printable(line)}")


def _conclude(count: int, approving: bool) -> None:
    if not count:
        echo("Nothing waits for approval.", err=True)
    elif approving:
        echo(f"Approved {count} change{'s' if count > 1 else ''}.")
    else:
        echo("Nothing was approved: name a server or pack.tool, or give --all.", err=True)


def _diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that differ, each after - or +; what cannot be seen is shown by its number."""
    for line in difflib.unified_diff(_lines(old), _lines(new), lineterm="", n=0):
        if not line.startswith(("---", "+++", "@@")):
            yield line


def _lines(definition: Mapping[str, Any]) -> list[str]:
    # ASCII, and nothing cut off: a hidden character, or the end of a long text, is what the user has to see here.
    lines = json.dumps(definition, indent=2, sort_keys=True).splitlines()
    return [line[start : start + WIDTH] for line in lines for start in range(0, len(line), WIDTH)]
