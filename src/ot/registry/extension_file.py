"""Reads one pack's file wherever it lies: for its author, who has named it."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from pathlib import Path

from ot.config.safe_file import read_regular
from ot.config.snapshot import take_snapshot
from ot.errors import ToolUnavailable
from ot.registry.extension_source import RESERVED, Extension

SUFFIX = "_tools.py"
MAX_BYTES = 1 << 20


def pack_name_problem(name: str) -> str:
    """Return why no pack can be called *name*, or nothing."""
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name) or name.startswith("_"):
        return f"'{name[:40]}' cannot be a pack's name: use letters, digits and _, with a letter first"
    return f"'{name}' is a pack of OneTool itself: choose another name" if name in RESERVED else ""


def pack_name_of(file: Path) -> str:
    """Return the name of the pack that *file* is.

    Raises:
        ToolUnavailable: It is not called like a pack.
    """
    name = file.name.removesuffix(SUFFIX)
    why = f"a pack's file is called <pack>{SUFFIX}" if name == file.name else pack_name_problem(name)
    if why:
        raise ToolUnavailable(file.name[:40], why)
    return name


def extension_of_file(file: Path, global_dir: Path) -> Extension:
    """Return the pack in *file*, read now, with what lies beside it in a directory of the pack's own.

    A pack outside of *global_dir* is given secrets as a project's is: of the user's, only those that were granted.

    Raises:
        ToolUnavailable: It is not called like a pack.
    """
    name = pack_name_of(file)
    of_project = not file.absolute().is_relative_to(global_dir.absolute())
    try:
        return Extension(name, file.parent, _files(name, file), of_project=of_project)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return Extension(name, file.parent, {}, of_project=of_project, problem=f"{file}: {why}")


def _files(name: str, file: Path) -> Mapping[str, bytes]:
    """Raises OSError or ValueError where the pack cannot be read."""
    main = read_regular(file, MAX_BYTES, follow=True).data
    if len(main) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
    if file.absolute().parent.name != name:
        return {file.name: main}  # what lies beside it may be a whole home directory
    beside = take_snapshot(file.parent)
    if beside.problems:
        raise ValueError("; ".join(beside.problems[:3]))
    return {**beside.contents, file.name: main}
