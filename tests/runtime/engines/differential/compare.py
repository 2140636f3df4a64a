"""Compares the portable engine with CPython, case by case.

Run as a script it writes down what it found, for a new release of the engine or new cases:
``PYTHONPATH=src:tests/runtime/engines python -m differential.compare``
"""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic_monty import (
    ClassInstance,
    CollectString,
    FunctionSnapshot,
    FutureSnapshot,
    Monty,
    MontyComplete,
    MontyError,
    MontyRuntimeError,
    NameLookupSnapshot,
    __version__,
)

from ot.errors import Gap
from ot.runtime.engines.portable.gaps import find_gaps

from . import answer

HERE = Path(__file__).parent
EXPECTED = HERE / "expected.yaml"
AGREEING = HERE / "agreeing.yaml"
DOCUMENTED = "documented"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
PACKS = frozenset({"pack"})
_LIMITS = {"max_feed_duration_secs": 2, "max_memory": 64 << 20}

SAME, REFUSED, RAISES, DIFFERENT = "same", "refused", "raises", "different"


@dataclass(frozen=True)
class Case:
    """One program; its id stays when others are added around it."""

    topic: str
    source: str

    @property
    def id(self) -> str:
        return f"{self.topic}-{hashlib.sha256(self.source.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Finding:
    """What became of a case."""

    case: Case
    gaps: tuple[Gap, ...]
    cpython: dict[str, Any]
    monty: dict[str, Any]

    @property
    def agrees(self) -> bool:
        return self.cpython == self.monty

    @property
    def outcome(self) -> str:
        """Return same, refused, raises <type> (the engine says so itself), documented or different (in silence)."""
        if self.gaps:
            return REFUSED
        if self.agrees:
            return SAME
        if "error" in self.monty:
            return f"{RAISES} {self.monty['error']}"
        return DOCUMENTED if self.case.topic == DOCUMENTED else DIFFERENT


def read_cases() -> list[Case]:
    """Return every case, from files that look like interactive sessions."""
    paths = sorted((HERE / "cases").glob("*.txt"))
    return [case for path in paths for case in _cases(path.stem, path.read_text(encoding="utf-8"))]


def _cases(topic: str, text: str) -> Iterator[Case]:
    source: list[str] = []
    for line in [*text.split("\n"), ">>> "]:
        if line.startswith(">>> ") and source:
            yield Case(topic, "\n".join(source))
            source = []
        if line.startswith((">>> ", "... ")) or line == "...":
            source.append(line[4:])


def compare(cases: list[Case]) -> list[Finding]:
    """Return what both sides made of each case."""
    cpython = _cpython([case.source for case in cases])
    with Monty(min_processes=1, max_processes=1) as pool:
        return [
            Finding(
                case, tuple(find_gaps(ast.walk(ast.parse(case.source)), PACKS)), answered, _monty(pool, case.source)
            )
            for case, answered in zip(cases, cpython, strict=True)
        ]


def _cpython(sources: list[str]) -> list[dict[str, Any]]:
    command = [sys.executable, "-I", answer.__file__]
    environment = {"TZ": "UTC", "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        command, input=json.dumps(sources), capture_output=True, text=True, env=environment, timeout=30, check=True
    )
    return json.loads(done.stdout)


# ---------------------------------------------------------------- the portable engine, driven as the server drives it


def _monty(pool: Monty, source: str) -> dict[str, Any]:
    pack, printed = answer.Pack(), CollectString()
    with pool.checkout(limits=_LIMITS) as session:  # pyright: ignore[reportArgumentType] - a plain dict is a TypedDict
        try:
            result = {"value": answer.encode(_drive(session, source, pack, printed))}
        except MontyRuntimeError as error:
            result = {"error": type(error.exception()).__name__}
        except MontyError as error:
            result = {"error": type(error).__name__}
    # As on the other side: what JSON makes of it.
    return json.loads(json.dumps({**result, "printed": printed.output, "calls": pack.calls}))


def _drive(session: Any, source: str, pack: answer.Pack, printed: CollectString) -> Any:
    view = ClassInstance(pack)
    snapshot = session.feed_start(source, inputs={"pack": view}, print_callback=printed)
    while not isinstance(snapshot, MontyComplete):
        snapshot = _step(snapshot, view, pack)
    return snapshot.output


def _step(snapshot: Any, view: Any, pack: answer.Pack) -> Any:
    if isinstance(snapshot, FutureSnapshot):
        return snapshot.resume({call: {"return_value": None} for call in snapshot.pending_call_ids})
    if isinstance(snapshot, NameLookupSnapshot):
        known = snapshot.object_id == view.id and hasattr(pack, snapshot.variable_name)
        return snapshot.resume(value=_reference(snapshot.variable_name)) if known else snapshot.resume()
    if not isinstance(snapshot, FunctionSnapshot):
        return snapshot.resume_auto()
    if snapshot.function_name == "system.sleep":
        return snapshot.resume({"return_value": None})
    if snapshot.function_name == "system.async_sleep":
        return snapshot.resume({"future": ...})
    function = getattr(pack, snapshot.function_name.removeprefix("pack__"), None)
    return snapshot.resume(_called(function, snapshot)) if function else snapshot.resume_auto()


def _reference(name: str) -> Any:
    def reference() -> None: ...

    reference.__name__ = f"pack__{name}"
    return reference


def _called(function: Any, snapshot: Any) -> Any:
    try:
        return {"return_value": function(*snapshot.args, **snapshot.kwargs)}
    except Exception as error:  # noqa: BLE001 - the pack's error belongs to the program
        return {"exception": error}


# ---------------------------------------------------------------- what was found the last time


def read_expected() -> dict[str, Any]:
    """Return the recorded outcomes: the versions, and the outcome of every case that is not the same."""
    return yaml.safe_load(EXPECTED.read_text(encoding="utf-8"))


def read_agreeing() -> dict[str, str]:
    """Return the cases that are refused although both sides agree, each with the reason."""
    return yaml.safe_load(AGREEING.read_text(encoding="utf-8"))


def read_documented() -> dict[str, list[Case]]:
    """Return the cases of the documented differences, by the name of the difference."""
    path, found = HERE / "cases" / f"{DOCUMENTED}.txt", dict[str, list[Case]]()
    for part in path.read_text(encoding="utf-8").split("\n# ")[1:]:
        name, _, text = part.partition("\n")
        found[name] = list(_cases(DOCUMENTED, text))
    return found


def record(findings: list[Finding]) -> None:
    """Write the outcomes down, each with the beginning of its case for the reader."""
    lines = ["# Written by compare.py: what became of each case. A case that is not here is the same in both."]
    lines += [f'monty: "{__version__}"', f'python: "{PYTHON}"', f"cases: {len(findings)}", "outcomes:"]
    for found in sorted(findings, key=lambda found: found.case.id):
        if found.outcome != SAME:
            lines.append(f"  {found.case.id}: {found.outcome}  # {_shown(found.case.source)}")
    EXPECTED.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _shown(source: str) -> str:
    """Return the beginning of a case on one line of plain characters."""
    return ascii(source)[1:-1][:100]


if __name__ == "__main__":
    record(compare(read_cases()))
