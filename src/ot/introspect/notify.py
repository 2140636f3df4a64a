"""Publishes messages: each is appended to the file that the user configured for its topic."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ot.config.models import Topic
from ot.files.no_links import NO_LINK, NO_WAIT, open_file
from ot.files.private_file import lock, write_all

NO_TOPIC = "SKIP: no matching topic"
MAX_TOPIC = 200
MAX_MESSAGE_BYTES = 64 << 10
MAX_FILE_BYTES = 64 << 20
APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | NO_LINK | NO_WAIT


def notify(
    topics: Sequence[Topic], topic: str, message: str, *, project: Path | None = None, now: datetime | None = None
) -> str:
    """Append *message* to the file of the first of *topics* whose pattern fits *topic*, and say where it went.

    In the directory *project* no link is followed.

    Raises:
        ValueError: The topic or the message is too long or no text, or the file is full.
        OSError: The file cannot be written.
    """
    _check(topic, message)
    found = next((known for known in topics if fits(known.pattern, topic)), None)
    if found is None:
        return NO_TOPIC
    append(Path(found.file), document(topic, message, now or datetime.now(UTC)), project)
    return f"OK: {topic} -> {found.file}"


def fits(pattern: str, topic: str) -> bool:
    """Return whether *topic* is one of those that *pattern* means: ``*`` stops at a colon, ``**`` does not."""
    import re2  # noqa: PLC0415 - only a message needs it; it takes linear time whatever the pattern

    linear: Any = re2
    wild = {"**": "(?s:.*)", "*": "[^:]*"}
    parts = [wild.get(part) or linear.escape(part) for part in re.split(r"(\*\*|\*)", pattern)]
    return linear.fullmatch("".join(parts), topic) is not None


def document(topic: str, message: str, now: datetime) -> bytes:
    """Return one YAML document: when, what about, and the message as it is."""
    import yaml  # noqa: PLC0415 - as in ot.output.formats

    def write(dumper: Any, value: str) -> Any:
        style = "|" if value == message else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    class Dumper(yaml.SafeDumper):
        """Writes the message as a block."""

    Dumper.add_representer(str, write)
    stamp = now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    value = {"ts": stamp, "topic": topic, "message": message}
    text = yaml.dump(value, Dumper=Dumper, explicit_start=True, sort_keys=False, allow_unicode=True, width=1 << 30)
    return text.encode() if text.endswith("\n") else text.encode() + b"\n"


def append(file: Path, data: bytes, project: Path | None = None) -> None:
    """Add *data* at the end of *file* as a whole, whatever other processes add at the same time.

    Raises:
        ValueError: The file has grown too large.
        OSError: It cannot be written; a symbolic link is not followed.
    """
    below = project if project and file.is_relative_to(project) else None
    descriptor = open_file(file, APPEND, below=below, make=True)
    try:
        lock(descriptor)
        size = os.lseek(descriptor, 0, os.SEEK_END)
        if size + len(data) > MAX_FILE_BYTES:
            raise ValueError(f"{file} has {size:,} bytes and takes no more messages: move it away")
        try:
            write_all(descriptor, data)
        except OSError:
            os.ftruncate(descriptor, size)  # half a document would spoil the next one
            raise
    finally:
        os.close(descriptor)


def _check(topic: str, message: str) -> None:
    # The program chose them, and annotations are not enforced.
    if not isinstance(topic, str) or not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance] - see above
        raise ValueError("topic and message must be text")
    if not topic or len(topic) > MAX_TOPIC:
        raise ValueError(f"topic must have 1 to {MAX_TOPIC} characters, got {len(topic):,}")
    if (size := len(message.encode(errors="replace"))) > MAX_MESSAGE_BYTES:
        raise ValueError(f"message must have at most {MAX_MESSAGE_BYTES:,} bytes, got {size:,}")
