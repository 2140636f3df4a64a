"""Writes the media of a reply to files."""

from __future__ import annotations

import errno
import os
from base64 import b64decode
from collections.abc import Mapping, Sequence
from itertools import count
from mimetypes import MimeTypes
from pathlib import Path
from typing import Any

KINDS = ("audio", "image", "resource")


def save_media(blocks: Sequence[Mapping[str, Any]], directory: str) -> list[dict[str, Any]]:
    """Return *blocks*, each with its ``file`` in *directory* instead of its data; no file is replaced.

    Raises:
        OSError: The directory or a file cannot be written.
    """
    place = Path(directory)
    require_no_detour(place)
    place.mkdir(parents=True, exist_ok=True)
    return [_save_block(dict(block), place) for block in blocks]


def require_no_detour(path: Path) -> None:
    """Return unless a link leads *path*, as it is written, out of the working directory: a clone may have brought it.

    Raises:
        OSError: It does.
    """
    here, real = Path.cwd(), path.resolve()
    written = Path(os.path.normpath(here / path))  # without looking at links
    if written.is_relative_to(here) and not real.is_relative_to(here.resolve()):
        raise OSError(errno.ELOOP, f"a link on the way leads to {real}; to write there, give that path")


def _save_block(block: dict[str, Any], place: Path) -> dict[str, Any]:
    holder: dict[str, Any] = dict(block["resource"]) if isinstance(block.get("resource"), dict) else block
    try:
        data = _data_of(holder)
    except ValueError:  # somebody else's base64
        data = None
    if data is None:
        return block
    # No part of the name is the server's own: it could lead elsewhere.
    kind = block["type"] if block.get("type") in KINDS else "media"
    file = _write_new(place, kind, _ending(str(holder.get("mimeType") or "")), data)
    kept = {key: value for key, value in holder.items() if key not in ("data", "blob", "text")}
    return ({**block, "resource": kept} if holder is not block else kept) | {"file": str(file)}


def _ending(mime_type: str) -> str:
    kind, known = mime_type.partition(";")[0].strip().lower(), MimeTypes()
    # Python's table has some types by their older names alone: audio/x-wav.
    found = (known.guess_extension(name, strict=False) for name in (kind, kind.replace("/", "/x-")))
    return next(filter(None, found), ".bin")


def _data_of(holder: Mapping[str, Any]) -> bytes | None:
    if isinstance(text := holder.get("text"), str):
        return text.encode()
    coded = holder.get("data") or holder.get("blob")
    return b64decode(coded, validate=True) if isinstance(coded, str) else None


def _write_new(place: Path, kind: str, ending: str, data: bytes) -> Path:
    for number in count(1):
        file = place / f"{kind}-{number}{ending}"
        try:
            with file.open("xb") as stream:
                stream.write(data)
        except FileExistsError:
            continue
        return file
    raise AssertionError("unreachable: count() is endless")
