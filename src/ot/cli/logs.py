"""onetool logs: what the server wrote about its own work."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Self, cast

import typer

from ot.cli.terminal import echo
from ot.visible_text import visible_json

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
PAUSE_SECONDS = 0.25
LATEST = 1 << 40
"""A moment that every platform's clock can show."""
OWN = ("ts", "level", "logger", "message", "span", "status", "duration", "trace")


def logs(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep following the log.")] = False,
    since: Annotated[str, typer.Option("--since", help="Only newer entries: 90s, 15m, 2h, 7d.")] = "",
    level: Annotated[str, typer.Option("--level", help="Only this level and above.")] = "DEBUG",
    run: Annotated[str, typer.Option("--run", help="Only entries of the run with this id.")] = "",
    principal: Annotated[
        str, typer.Option("--principal", help="Only entries about this person: token|ann, or ann of any issuer.")
    ] = "",
    shared: Annotated[bool, typer.Option("--shared", help="That of the server that your clients share.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the lines unchanged, as JSON.")] = False,
) -> None:
    """Show the server's log."""
    if level.upper() not in LEVELS:
        raise typer.BadParameter(f"'{level}' is not a level: {', '.join(LEVELS)}")
    path, oldest = _path(shared), _oldest(since)
    for line in _lines(path, follow):
        entry = _entry(line)
        wanted = LEVELS.index(str(entry.get("level", "INFO"))) if entry.get("level") in LEVELS else 1
        if wanted < LEVELS.index(level.upper()) or _number(entry, "ts") < oldest:
            continue
        if run and entry.get("run") != run:
            continue
        if principal and not _is_about(entry, principal):
            continue
        # A line as it is; what a terminal would obey is written as JSON can write it too.
        echo(visible_json(line) if as_json else _text(entry))


def _is_about(entry: dict[str, Any], principal: str) -> bool:
    found = str(entry.get("principal", ""))
    return found == principal or ("|" not in principal and found.rpartition("|")[2] == principal)


def _path(shared: bool) -> Path:
    from ot.config.load import load_config
    from ot.config.paths import Paths
    from ot.logs import log_path

    paths = Paths.find()
    loaded = load_config(paths)
    # A shared server works for all directories, and writes where the user's own settings are.
    path = log_path(paths.global_dir if shared else loaded.state_dir)
    if not path.exists():
        why = "" if loaded.config.logs.file else " (logs.file is false)"
        echo(f"onetool: there is no log yet at {path}{why}", err=True)
    return path


def _oldest(since: str) -> float:
    if not since:
        return 0.0
    number, unit = since[:-1], since[-1:]
    if unit not in UNITS or not number.isdigit():
        raise typer.BadParameter(f"'{since}' is not a time: write 90s, 15m, 2h or 7d")
    return time.time() - int(number) * UNITS[unit]


def _lines(path: Path, follow: bool) -> Iterator[str]:
    """Yield every line, those of older files first; with *follow* also those that come, until interrupted."""
    numbers = [int(file.suffix[1:]) for file in path.parent.glob(f"{path.name}.*") if file.suffix[1:].isdigit()]
    older = [path.with_name(f"{path.name}.{number}") for number in sorted(numbers, reverse=True)]
    for file in older if follow else [*older, path]:
        if file.exists():
            with file.open(encoding="utf-8", errors="replace") as lines:
                yield from (line.rstrip("\n") for line in lines)
    if follow:
        yield from _following(path)


def _following(path: Path) -> Iterator[str]:
    while not path.exists():
        time.sleep(PAUSE_SECONDS)
    with LogTail(path) as tail:
        while True:
            yield from tail.read()
            time.sleep(PAUSE_SECONDS)


class LogTail:
    """Reads a file and what is added to it, and goes over to the new file when it is full."""

    def __init__(self, path: Path) -> None:
        """Start with what is there, so that nothing that comes meanwhile is missed."""
        self._path = path
        self._file = path.open(encoding="utf-8", errors="replace")
        self._rest = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self) -> list[str]:
        """Return the lines that came since the last time."""
        *whole, self._rest = (self._rest + self._file.read()).split("\n")
        if not whole and self._path.exists() and not os.path.samestat(self._path.stat(), os.fstat(self._file.fileno())):
            self._file.close()
            self._file = self._path.open(encoding="utf-8", errors="replace")
        return whole


def _entry(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {"message": line}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {"message": line}


def _text(entry: dict[str, Any]) -> str:
    from ot.log_span import in_a_log

    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(_number(entry, "ts")))
    if "span" in entry:
        said = f"{entry['span']} {entry.get('status', '')} {_number(entry, 'duration'):.3f}s"
    else:
        said = f"{entry.get('logger', '')}: {entry.get('message', '')}"
    more = " ".join(f"{name}={value}" for name, value in entry.items() if name not in OWN)
    trace = f"\n{entry['trace']}" if entry.get("trace") else ""
    return f"{clock} {in_a_log(f'{entry.get("level", "")!s:<7} {said}{" " if more else ""}{more}{trace}')}"


def _number(entry: dict[str, Any], key: str) -> float:
    """Return a number that a clock can show; a line of the log may be anything."""
    found = entry.get(key)
    return found if isinstance(found, int | float) and 0 <= found < LATEST else 0
