"""GuideEnvironment: where documents lie and what is offered, as the environment says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

FOLDER = ".guide"
PROJECT, USER, EXAMPLES = "MCP_GUIDE_PROJECT", "MCP_GUIDE_USER_DIR", "MCP_INCLUDE_EXAMPLE_TOOLS"
HOST_DIRECTORY = "OT_CWD"
"""Where OneTool works, if not in the working directory of its process; as its pack the guide works there, too."""


@dataclass(frozen=True, slots=True)
class GuideEnvironment:
    """The project's directory, the user's directory of documents, and whether example tools are offered."""

    project: Path
    user: Path
    include_examples: bool = False

    @classmethod
    def read(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Return what *variables* say; without them the working directory and ``~/.guide``."""
        return cls(
            _path(variables.get(PROJECT) or variables.get(HOST_DIRECTORY) or "."),
            _path(variables.get(USER) or f"~/{FOLDER}"),
            variables.get(EXAMPLES) == "true",
        )


def _path(text: str) -> Path:
    # Unlike Path.expanduser it does not raise where there is no home.
    return Path(os.path.expanduser(text)).absolute()  # noqa: PTH111 - as above
