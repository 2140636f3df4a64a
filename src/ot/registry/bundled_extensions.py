"""Finds the bundled packs that run in workers, and reads of their files only what somebody asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from ot.registry.extension_source import SUFFIX, Extension
from ot.registry.pack_needs import read_needs

SHARED = "_shared"
"""The directory whose files each of these packs gets beside its own."""


@cache
def bundled_extensions(directory: Path) -> tuple[Extension, ...]:
    """Return the packs below *directory*, one for each directory there that holds a pack's file."""
    folders = [folder for folder in sorted(directory.glob("[!_.]*")) if (folder / f"{folder.name}{SUFFIX}").is_file()]
    shared = _files(directory / SHARED)
    return tuple(_extension(folder, shared | _files(folder)) for folder in folders)


def _files(folder: Path) -> dict[str, Path]:
    return {file.name: file for file in sorted(folder.glob("*")) if file.is_file()}


def _extension(folder: Path, files: Mapping[str, Path]) -> Extension:
    main = files[f"{folder.name}{SUFFIX}"]
    return Extension(
        folder.name,
        folder,
        LazyFiles(files),
        bundled=True,
        state=_state(files),
        find_needs=lambda: read_needs(main.read_text(encoding="utf-8")),
    )


def _state(files: Mapping[str, Path]) -> str:
    """Return a value that changes when one of the files does: their places, sizes and times."""
    found = ((file, file.stat()) for file in files.values())
    return " ".join(f"{file}:{status.st_size}:{status.st_mtime_ns}" for file, status in found)


class LazyFiles(Mapping[str, bytes]):
    """Files by name, each read when it is asked for."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        """Read *files* later."""
        self._files = files
        self._read: dict[str, bytes] = {}

    def __getitem__(self, name: str) -> bytes:
        """Return the content of the file *name*."""
        if name not in self._read:
            self._read[name] = self._files[name].read_bytes()
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        """Return the names."""
        return iter(self._files)

    def __len__(self) -> int:
        """Return how many files there are."""
        return len(self._files)
