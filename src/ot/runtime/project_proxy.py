"""The ``proj`` pack: configured projects as attributes that are paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from ot.config.models import Project
from ot.config.paths import expand_home
from ot.errors import UnknownTool
from ot.nearest_names import listing
from ot.runtime.engines.engine import Constant, Function, Missing
from ot_sdk.redaction import redact_value

PACK = "proj"


class ProjectPath(PurePosixPath):
    """The path of a project, or of something below it."""


class ProjectProxy:
    """Resolves ``proj.<name>``: functions first, then projects."""

    def __init__(self, projects: Mapping[str, Project], redact: Callable[[str], str] = lambda text: text) -> None:
        """Offer *projects* by name; *redact* takes the secrets out of their attributes."""
        self._projects = projects
        self._redact = redact
        self.functions = {"path": self.path, "list": self.list}

    def path(self, name: str) -> str:
        """Return the path of the project *name*.

        Args:
            name: The project's name in the configuration.

        Returns:
            The absolute path.

        Example:
            proj.path(name="onetool")
        """
        return str(self.resolve(name))

    def list(self) -> list[dict[str, Any]]:
        """List the configured projects.

        Returns:
            One entry a project: name, path, attrs.

        Example:
            proj.list()
        """
        return [
            {"name": name, "path": str(self.resolve(name)), "attrs": redact_value(project.attrs, self._redact)}
            for name, project in self._projects.items()
        ]

    def resolve(self, name: str) -> ProjectPath:
        """Return the project's path.

        Raises:
            AttributeError: There is no such project; the text lists what there is.
        """
        project = self._projects.get(name)
        if project is None:
            raise AttributeError(str(self._unknown(name)))
        return ProjectPath(expand_home(str(project.path)))

    def member(self, name: str) -> Function | Constant | Missing:
        """Return the member ``proj.name``; a function wins over a project."""
        if name in self.functions:
            return Function()
        return Constant(self.resolve(name)) if name in self._projects else Missing()

    def require_function(self, name: str) -> None:
        """Check that ``proj.name`` can be called.

        Raises:
            UnknownTool: It cannot; the text lists functions and projects.
        """
        if name not in self.functions:
            raise self._unknown(name)

    def _unknown(self, name: str) -> UnknownTool:
        projects = listing(name, list(self._projects)) or "none are configured"
        return UnknownTool(PACK, name, tuple(self.functions), note=f"Available projects: {projects}")
