"""Programs with a cassette beside them, and whether each still does what it did when it was recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ot.config.snapshot import Snapshot
from ot.errors import OneToolError, ToolUnavailable
from ot.registry.saved_programs import PROGRAMS, SavedProgram
from ot.runtime.cassettes.cassette import SUFFIX, read_cassette
from ot.runtime.cassettes.replay import Replay
from ot.runtime.reply import Reply

SOURCE = ".py"


NOTHING_RUN = "the cassette does not say how the saved program was called: record it with 'onetool run --record'"


@dataclass(frozen=True)
class TestedProgram:
    """A program that has a cassette beside it."""

    __test__ = False  # pytest would take it for a test

    name: str
    file: Path
    text: str


def programs_with_cassettes(user_dir: Path, project: Snapshot | None) -> Iterator[TestedProgram]:
    """Yield the programs with cassettes of a trusted *project*, as they were trusted, then those of the user."""
    for path in sorted(project.contents) if project else ():
        name = path.removeprefix(f"{PROGRAMS}/").removesuffix(SOURCE)
        if project and path == f"{PROGRAMS}/{name}{SOURCE}" and f"{PROGRAMS}/{name}{SUFFIX}" in project.hashes:
            yield TestedProgram(name, project.root / path, project.contents[path].decode(errors="replace"))
    for file in sorted((user_dir / PROGRAMS).glob(f"*{SOURCE}")):
        if file.with_name(f"{file.stem}{SUFFIX}").is_file():
            yield TestedProgram(file.stem, file, file.read_text(encoding="utf-8", errors="replace"))


async def replay_program(
    program: TestedProgram, run: Callable[..., Awaitable[Reply]], redact: Callable[[str], str]
) -> list[str]:
    """Return how *program* differs from its cassette when *run* runs it with a tape: nothing if it does the same."""
    try:
        cassette = read_cassette(program.file.with_name(f"{program.name}{SUFFIX}"))
    except (OneToolError, OSError) as error:
        return [str(error)]
    text = cassette.program if _holds_functions_alone(program) else program.text
    if not text:
        return [NOTHING_RUN]
    tape = Replay(cassette, redact)
    reply = await run(text, tape=tape)
    differences = tape.list_differences()
    return [reply.text, *differences] if differences and reply.is_error else differences


def _holds_functions_alone(program: TestedProgram) -> bool:
    """Return whether it is a saved program, which does nothing until it is called."""
    try:
        return bool(SavedProgram(program.name, program.file, program.text.encode()).tools)
    except (ToolUnavailable, SyntaxError):
        return False
