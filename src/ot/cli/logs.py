"""onetool logs: what the server wrote about its own work."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Self, cast

import typer

from ot.cli.terminal import echo

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
PAUSE_SECONDS = 0.25
OWN = ("ts", "level", "logger", "message", "span", "status", "duration", "trace")


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("logs", epilog="Example: onetool logs -f --level WARNING")(logs)


def logs(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on and show what comes.")] = False,
    since: Annotated[str, typer.Option("--since", help="Only what is younger: 90s, 15m, 2h, 7d.")] = "",
    level: Annotated[str, typer.Option("--level", help="Only this level and above.")] = "DEBUG",
    run: Annotated[str, typer.Option("--run", help="Only what belongs to the run of this id.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the lines as they are, JSON.")] = False,
) -> None:
    """Show the server's log."""
    if level.upper() not in LEVELS:
        raise typer.BadParameter(f"'{level}' is no level: {', '.join(LEVELS)}")
    path, oldest = _path(), _oldest(since)
    for line in _following(path) if follow else _lines(path):
        entry = _entry(line)
        wanted = LEVELS.index(str(entry.get("level", "INFO"))) if entry.get("level") in LEVELS else 1
        if wanted < LEVELS.index(level.upper()) or entry.get("ts", 0) < oldest:
            continue
        if run and entry.get("run") != run:
            continue
        echo(_as_json(line) if as_json else _text(entry))


def _path() -> Path:
    from ot.config.load import load_config
    from ot.config.paths import Paths
    from ot.config.trust import Trust
    from ot.logs import log_path

    paths = Paths.find()
    loaded = load_config(paths, Trust(paths.global_dir))
    path = log_path(loaded.state_dir)
    if not path.exists():
        why = "" if loaded.config.logs.file else " (logs.file is false)"
        echo(f"onetool: there is no log yet at {path}{why}", err=True)
    return path


def _oldest(since: str) -> float:
    if not since:
        return 0.0
    number, unit = since[:-1], since[-1:]
    if unit not in UNITS or not number.isdigit():
        raise typer.BadParameter(f"'{since}' is no time: write 90s, 15m, 2h or 7d")
    return time.time() - int(number) * UNITS[unit]


def _lines(path: Path) -> Iterator[str]:
    """Yield every line, those of older files first."""
    for file in [*_older(path), path]:
        yield from _lines_of(file)


def _lines_of(file: Path) -> Iterator[str]:
    if file.exists():
        with file.open(encoding="utf-8", errors="replace") as lines:
            yield from (line.rstrip("\n") for line in lines)


def _older(path: Path) -> list[Path]:
    numbers = [int(file.suffix[1:]) for file in path.parent.glob(f"{path.name}.*") if file.suffix[1:].isdigit()]
    return [path.with_name(f"{path.name}.{number}") for number in sorted(numbers, reverse=True)]


def _following(path: Path) -> Iterator[str]:
    """Yield every line, and those that come, until interrupted."""
    for file in _older(path):
        yield from _lines_of(file)
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


def _as_json(line: str) -> str:
    """Return a line as it is; what a terminal would obey is written as JSON can write it too."""
    from ot.visible_text import visible_json

    return visible_json(line)


def _text(entry: dict[str, Any]) -> str:
    from ot.log_span import in_a_log

    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.get("ts", 0)))
    if "span" in entry:
        said = f"{entry['span']} {entry.get('status', '')} {entry.get('duration', 0):.3f}s"
    else:
        said = f"{entry.get('logger', '')}: {entry.get('message', '')}"
    more = _fields(entry.items())
    trace = f"\n{entry['trace']}" if entry.get("trace") else ""
    return f"{clock} {in_a_log(f'{entry.get("level", "")!s:<7} {said}{" " if more else ""}{more}{trace}')}"


def _fields(items: Iterable[tuple[str, Any]]) -> str:
    return " ".join(f"{name}={value}" for name, value in items if name not in OWN)
