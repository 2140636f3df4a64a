"""Asks a process of its own what is in a document: a hostile one ends that process and nothing else."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

READER = Path(__file__).with_name("documents_reader.py")
GRACE_SECONDS = 2.0
"""The child ends itself in time; this much later it is killed."""
SHOWN_ERROR = 300


@dataclass(frozen=True)
class DocumentLimits:
    """What one document may cost."""

    input_bytes: int
    unpacked_bytes: int
    output_bytes: int
    memory_bytes: int
    seconds: float


def ask_child(file: BinaryIO, request: Mapping[str, Any], limits: DocumentLimits) -> Any:
    """Return the child's answer about the document that *file* holds.

    Raises:
        ValueError: The document cannot be read, or costs more than *limits* allow.
    """
    argument = json.dumps({**request, "limits": asdict(limits)})
    command = [sys.executable, "-I", "-X", "utf8", "-W", "ignore", str(READER), argument]
    # Files in place of pipes: the system itself bounds how much the child can write.
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, stdin=file, stdout=answer, stderr=errors, env={}, cwd="/")
        try:
            status = child.wait(limits.seconds + GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
        finally:
            child.kill()
            child.wait()
        if status == 0:
            return _value(request["path"], answer)
        raise ValueError(f"{request['path']!r} {_cause(status, errors, limits)}")


def _value(path: str, answer: IO[bytes]) -> Any:
    answer.seek(0)
    told = json.loads(answer.read())
    if "error" in told:
        raise ValueError(f"{path!r} {told['error']}")
    return told["value"]


def _cause(status: int, errors: IO[bytes], limits: DocumentLimits) -> str:
    """Say why the child could not say so itself."""
    errors.seek(0)
    said = errors.read(1 << 20).decode(errors="replace")
    if status in (-signal.SIGALRM, -signal.SIGXCPU, -signal.SIGKILL):
        return f"took longer than {limits.seconds:.3g} s to read (tools.documents.seconds): ask for fewer pages"
    memory = f"more than {limits.memory_bytes:,} bytes of memory (tools.documents.memory_bytes)"
    if "memory" in said.lower():
        return f"needs {memory}"
    last = said.strip().rpartition("\n")[2][:SHOWN_ERROR]
    return (
        f"cannot be read: it made the reader crash (status {status}), for instance by needing {memory} {last}".strip()
    )
