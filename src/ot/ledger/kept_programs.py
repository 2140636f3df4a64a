"""KeptPrograms: the programs of the latest runs that called tools, without secrets, for ``onetool save``."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ot.batches import Batches
from ot.files.no_links import make_private
from ot.files.private_file import hold_lock, read_regular

KEPT = Path("runs") / "programs.jsonl"
BEFORE = ".1"
"""What the name of the file ends in that was full."""
MAX_CHARACTERS = 16 << 10
"""Of one program; a longer one is not kept."""
MAX_BYTES = 2 << 20
"""Of one file, of which there are two at most."""
FLUSH_SECONDS = 2.0
APPEND = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class KeptProgram:
    """The program of one run: a line of the file."""

    run: str
    at: float
    directory: str
    program: str


class KeptPrograms:
    """Writes programs a moment after their runs, on a thread that begins with the first."""

    def __init__(self, global_dir: Path, redact: Callable[[str], str]) -> None:
        """Keep them in *global_dir*, as *redact* leaves them."""
        self._file = global_dir / KEPT
        self._redact = redact
        self._batches = Batches(self._write, name="onetool-programs", seconds=1.0, most=50)

    def keep(self, directory: str, run: str, program: str) -> None:
        """Have the program of a run written, unless it is too long."""
        if len(program) <= MAX_CHARACTERS:
            self._batches.add(KeptProgram(run, time.time(), directory, program))

    def close(self) -> None:
        """Write what is there."""
        self._batches.close(FLUSH_SECONDS)

    def _write(self, kept: list[KeptProgram]) -> bool:
        lines = [json.dumps(asdict(one) | {"program": self._redact(one.program)}) + "\n" for one in kept]
        with suppress(OSError):  # what cannot be kept cannot be saved later, no more
            make_private(self._file.parent)
            with hold_lock(self._file), os.fdopen(os.open(self._file, os.O_CREAT | APPEND, 0o600), "ab") as file:
                file.write("".join(lines).encode())
                if file.tell() > MAX_BYTES:
                    self._file.replace(f"{self._file}{BEFORE}")
        return True


def read_kept(global_dir: Path) -> list[KeptProgram]:
    """Return what is kept, the latest first; a line that cannot be read is left out."""
    found: list[KeptProgram] = []
    for place in (Path(f"{global_dir / KEPT}{BEFORE}"), global_dir / KEPT):
        with suppress(OSError):
            for line in read_regular(place, 4 * MAX_BYTES, follow=False).data.decode(errors="replace").split("\n"):
                with suppress(ValueError, TypeError):
                    found.append(KeptProgram(**json.loads(line)))
    return found[::-1]
