"""GuideEnvironment: where documents lie and what is offered, as the environment says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

FOLDER = ".guide"
PROJECT, USER, EXAMPLES = "MCP_GUIDE_PROJECT", "MCP_GUIDE_USER_DIR", "MCP_INCLUDE_EXAMPLE_TOOLS"


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
            Path(variables.get(PROJECT) or Path.cwd()).absolute(),
            Path(variables.get(USER) or Path.home() / FOLDER).expanduser().absolute(),
            variables.get(EXAMPLES) == "true",
        )
