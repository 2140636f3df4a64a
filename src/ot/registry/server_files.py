"""Files about proxied servers in the user's directory: JSON, private, whole or not there."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from pathlib import Path
from typing import Any, cast

from ot.config.safe_file import read_regular, write_private

logger = logging.getLogger(__name__)

FOLDER = "servers"
MAX_BYTES = 64 << 20


def server_file(directory: Path, server: str, kind: str, *more: str) -> Path:
    """Return the file of that kind for *server*; what else tells it apart goes into its name as a hash."""
    # Two servers whose names differ in what a file's name cannot hold must not share a file.
    hashed = hashlib.sha256("\0".join((server, *more)).encode()).hexdigest()[:12]
    return directory / f"{re.sub(r'[^A-Za-z0-9_-]', '_', server)[:60]}-{hashed}.{kind}.json"


def read_json(path: Path) -> dict[str, Any] | None:
    """Return what the file holds, or nothing when there is none.

    Raises:
        ValueError: It cannot be used; the text says why.
    """
    try:
        found = read_regular(path, MAX_BYTES, follow=False)
        if found.writable_by_others:
            raise ValueError("other users can write it")
        value = json.loads(found.data)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from None
    if not isinstance(value, dict):
        raise ValueError("it holds no object")
    return cast("dict[str, Any]", value)


def read_or_forget(path: Path) -> dict[str, Any]:
    """Return what the file holds; one that cannot be used is passed over with a warning, and written anew later."""
    try:
        return read_json(path) or {}
    except ValueError as error:
        logger.warning("%s is not used: %s", path, error)
        return {}


def write_json(path: Path, value: Any) -> None:
    """Put *value* into the file, for its owner's eyes alone.

    Raises:
        OSError: It cannot be written.
        ValueError: It could not be read again.
    """
    # The standard library's: whole numbers of any size come back as they were, and so does every hash of them.
    text = json.dumps(value)
    if len(text) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES >> 20} MiB")
    write_private(path, text)
