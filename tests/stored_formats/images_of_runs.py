"""A sample of what is kept of a run for its undo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ot.files.path_state import NOTHING, PathState
from ot.files.run_images import ImageBounds, ImageStore
from stored_formats.stored_format import StoredFormat

RUN = "1f0c2b7a9d3e4f56"
DATA = b"before\n"
OLD, NEW = PathState("file", 0o640, len(DATA)), PathState("file", 0o640, 3).with_hash(b"new")


def _store(directory: Path) -> ImageStore:
    return ImageStore(lambda principal: directory / "undo", ImageBounds(file_bytes=100))


def _make(directory: Path) -> None:
    images = _store(directory).images_of("ada", RUN, "/srv/shop")
    assert images
    with images.change_of("/srv/shop/a.txt", lambda most: (OLD, DATA), lambda state, data: NEW):
        pass
    with images.change_of("/srv/shop/a.txt", lambda most: (NEW, None), lambda state, data: NOTHING):
        pass
    with images.change_of("/srv/shop/large", lambda most: (OLD._replace(size=101), None), lambda *_: NOTHING):
        pass
    with images.change_of("note 1", lambda most: (NOTHING, None), lambda *_: PathState("note", size=1)):
        pass
    images.close()


def _read(directory: Path) -> Any:
    with _store(directory).open_run("ada", RUN) as (kept, file):
        paths = {
            one.path: [one.before.kind, one.read_bytes(file), [state.kind for state in one.left], one.mixed, one.why]
            for one in kept.paths.values()
        }
        return {"run": kept.about["run"], "directory": kept.about["directory"], "gaps": kept.has_gaps, "paths": paths}


FORMATS = (
    StoredFormat(
        "undo",
        _make,
        _read,
        {
            "run": RUN,
            "directory": "/srv/shop",
            "gaps": False,
            "paths": {
                "/srv/shop/a.txt": ["file", DATA, ["nothing"], False, ""],
                "/srv/shop/large": [
                    "file", None, ["nothing"], False, "it was too large to be kept (undo.file_bytes)",
                ],
                "note 1": ["nothing", None, ["note"], False, ""],
            },
        },
    ),
)  # fmt: skip
