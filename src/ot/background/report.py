"""Reports of runs that were not brought to their end: what is done, what is unknown, what was not started."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ot.background.run_place import RunPlace
from ot.errors import OneToolError, ResultError
from ot.ledger.background_run import BackgroundRun
from ot.ledger.entries import LedgerEntry
from ot.runtime.foreseen_calls import foreseen_calls
from ot.runtime.program import Program

MAX_LINES = 20
FOUND_OUT = "may or may not have taken effect: find out before you repeat it"
NOT_READ = "the program could not be read, so what it would still have called is not known"
BY_TEXT = "by the program's text alone; calls that only read are left out"


@dataclass(frozen=True, slots=True)
class RunReport:
    """How far a run came."""

    texts: tuple[str, ...]
    handle: str = ""
    """The stored result that holds the report with the values so far."""


async def report_on(run: BackgroundRun, why: str, entries: Sequence[LedgerEntry], place: RunPlace) -> RunReport:
    """Return the report on a run that was ended because of *why*, and store it with the values of its calls."""
    program = await _program(place, run.command)
    sent = [entry for entry in entries if entry.state != "failed"]
    rest = _not_started(program, place, entries)
    stored = {
        "run": run.id,
        "name": run.name,
        "why": why,
        "done": [_row(entry) | {"value": entry.value} for entry in sent if entry.state == "done"],
        "unknown": [_row(entry) for entry in sent if entry.state != "done"],
        "failed": [_row(entry) for entry in entries if entry.state == "failed"],
        "not_started": rest,
    }
    handle, kept = await _keep_report(place, stored, run.principal)
    lines = [f"The run was not brought to its end: {why}.", *describe_calls(entries), *_describe_rest(rest), kept]
    return RunReport(tuple(lines), handle)


async def _program(place: RunPlace, command: str) -> Program | None:
    try:
        return (await place.read_program(command))[0]
    except OneToolError:
        return None


async def _keep_report(place: RunPlace, stored: Mapping[str, Any], principal: str) -> tuple[str, str]:
    """Return the handle of the stored report, and the words that tell of it."""
    try:
        handle = await place.keep(stored, principal, "ot.background")
    except ResultError as error:
        return "", f"The values so far could not be stored: {error}"
    read = f'ot.result(handle="{handle}", path=".")'
    return handle, f"{read} gives this report as a value, with what each call returned, for the program that goes on"


def _row(entry: LedgerEntry) -> dict[str, Any]:
    row = entry.as_row()
    return {name: row[name] for name in ("call", "tool", "line", "sent")}


def describe_calls(entries: Iterable[LedgerEntry]) -> list[str]:
    """Return a line for each call that was sent and did not fail, those alike together."""
    sent = (entry for entry in entries if entry.state != "failed")
    counted = Counter((entry.state == "done", entry.tool, entry.line) for entry in sent)
    if not counted:
        return ["- no call that changes something was sent"]
    ordered = sorted(counted.items(), key=lambda item: not item[0][0])
    lines = [
        f"- {'done' if done else 'unknown'}: {_place(tool, line)}{f', {count} times' if count > 1 else ''}"
        + ("" if done else f" {FOUND_OUT}")
        for (done, tool, line), count in ordered
    ]
    return _cut(lines)


def _describe_rest(rest: Sequence[Mapping[str, Any]] | None) -> list[str]:
    if rest is None:
        return [f"- not started: {NOT_READ}"]
    if not rest:
        return [f"- not started: nothing is left ({BY_TEXT})"]
    lines = [f"- not started: {_place(call['tool'], call['line'])}, {_most(call['most'])}" for call in rest]
    return [*_cut(lines), f"What was not started is told {BY_TEXT}."]


def _most(most: int | None) -> str:
    return "how often is not known" if most is None else f"at most {most} call{'s' * (most > 1)}"


def _place(tool: str, line: int | None) -> str:
    return f"{tool}, line {line}" if line else tool


def _cut(lines: list[str]) -> list[str]:
    hidden = len(lines) - MAX_LINES
    return [*lines[:MAX_LINES], f"- and {hidden} more"] if hidden > 0 else lines


def _not_started(
    program: Program | None, place: RunPlace, entries: Sequence[LedgerEntry]
) -> list[dict[str, Any]] | None:
    """Return the tools that the program may still call, and how often at most; None when it cannot be read."""
    if program is None:
        return None
    made = Counter(entry.tool for entry in entries)
    rest: list[dict[str, Any]] = []
    for tool, line in _tools_in(program).items():
        if not place.changes_something(tool):
            continue
        most = foreseen_calls(program, tool, None, 0).most
        left = None if most is None else most - made[tool]
        if left is None or left > 0:
            rest.append({"tool": tool, "line": line, "most": left})
    return rest


def _tools_in(program: Program) -> dict[str, int]:
    """Return what looks like tools in the program, each with its last line."""
    found = [
        (node.lineno, f"{node.value.id}.{node.attr}")
        for node in program.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    ]
    return {tool: line for line, tool in sorted(found)}
