"""The texts of what was trusted, kept privately so that the next question can show what has changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from ot.files.private_file import read_regular, write_private

FOLDER = "seen"
MAX_FILE_BYTES = 64 << 10
MAX_BYTES = 1 << 20
MOST = 500


class SeenText:
    """One file a project in the user's directory; what is too large, or no text, is not kept."""

    def __init__(self, global_dir: Path) -> None:
        self._folder = global_dir / FOLDER

    def keep(self, directory: str, contents: Mapping[str, bytes], *, without: str) -> None:
        """Keep the texts of *directory*, but not the file *without*, which holds secrets."""
        texts: dict[str, str] = {}
        left = MAX_BYTES
        for name, data in contents.items():
            if name != without and len(data) <= min(MAX_FILE_BYTES, left):
                with suppress(UnicodeDecodeError):
                    texts[name] = data.decode()
                    left -= len(data)
        write_private(self._file(directory), json.dumps({"directory": directory, "files": texts}))
        for outdated in sorted(self._folder.glob("*.json"), key=lambda file: file.lstat().st_mtime)[:-MOST]:
            outdated.unlink(missing_ok=True)

    def read(self, directory: str, hashes: Mapping[str, str]) -> dict[str, bytes]:
        """Return those texts of *directory* that have the hashes under which they were trusted."""
        try:
            found: Any = json.loads(read_regular(self._file(directory), 8 * MAX_BYTES, follow=False).data)
            files = cast("dict[str, str]", found["files"])
            texts = {name: text.encode() for name, text in files.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}
        return {name: data for name, data in texts.items() if hashes.get(name) == hashlib.sha256(data).hexdigest()}

    def forget(self, directory: str) -> None:
        """Remove what is kept of *directory*."""
        self._file(directory).unlink(missing_ok=True)

    def _file(self, directory: str) -> Path:
        return self._folder / f"{hashlib.sha256(directory.encode(errors='surrogateescape')).hexdigest()[:32]}.json"
