"""What notes were before a run changed them, as it is kept for an undo."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from ot.files.path_state import NOTHING, PathState
from ot.files.run_images import RunImages
from ot.files.run_writes import current_writes

KIND = "note"

type NoteImage = dict[str, Any] | None
"""All of a note as plain data; nothing where there is none."""


def keep_images(kept: ExitStack, before: Mapping[int, NoteImage], copy: Callable[[int], NoteImage]) -> None:
    """Write down what notes were *before* and what ``copy`` says they are now; *kept* is closed once they are that."""
    if images := current_writes().images:
        for id, image in before.items():
            kept.enter_context(_keep_image(images, id, state_of(image), state_of(copy(id))[0]))


def _keep_image(
    images: RunImages, id: int, before: tuple[PathState, bytes | None], after: PathState
) -> AbstractContextManager[None]:
    return images.change_of(f"{KIND} {id}", lambda most: before, lambda state, data: after)


def state_of(image: NoteImage) -> tuple[PathState, bytes | None]:
    """Return the state of a note, and what is kept of it."""
    if image is None:
        return NOTHING, None
    data = json.dumps(image, ensure_ascii=False).encode()
    return PathState(KIND, size=len(data)).with_hash(data), data
