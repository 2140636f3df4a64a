"""Writes the samples of the release that this is: ``python tests/stored_formats/make_samples.py [FORMAT ...]``.

The samples of earlier releases stay as they are: nobody can make them again.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), *map(str, TESTS.parent.glob("plugins/*/tests"))]

from stored_formats.formats import FORMATS, SAMPLES, make  # noqa: E402 - the tests are no package


def release() -> str:
    """Return the version that this checkout is going to be."""
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def main(wanted: list[str]) -> None:
    """Write the samples of all formats, or of those named."""
    for one in FORMATS:
        if not wanted or one.name in wanted:
            make(one, SAMPLES / release() / one.name)


if __name__ == "__main__":
    main(sys.argv[1:])
