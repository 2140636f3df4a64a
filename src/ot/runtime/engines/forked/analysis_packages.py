"""AnalysisPackages: the packages that the user lets programs import, installed once by uv."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ot.errors import EngineUnavailable, ToolUnavailable
from ot.runtime.engines.forked.jail_command import Packages
from ot.runtime.program import Program
from ot.workers.pack_environment import PackEnvironments

SETTING = "engines.exact.packages"
FILE = "packages.py"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
INSTALL_SECONDS = 600.0


class AnalysisPackages:
    """Makes one environment of *requirements*, kept for good; it has nothing to do with the server's own."""

    def __init__(self, requirements: Sequence[str], environments: PackEnvironments) -> None:
        """Install *requirements* where the environments of packs are kept."""
        self.requirements = tuple(requirements)
        self._environments = environments

    async def installed(self) -> Packages:
        """Return where they are, once they are there.

        Raises:
            EngineUnavailable: They cannot be installed.
        """
        dependencies = ", ".join(json.dumps(requirement) for requirement in self.requirements)
        lines = ("/// script", f'requires-python = "=={VERSION}.*"', f"dependencies = [{dependencies}]", "///")
        header = "".join(f"# {line}\n" for line in lines)
        try:
            found = await self._environments.prepare(SETTING, {FILE: header.encode()}, FILE, budget=INSTALL_SECONDS)
        except ToolUnavailable as error:
            raise EngineUnavailable("exact", f"{SETTING} cannot be installed: {error.why}") from None
        return Packages(site_packages(found.python), self._names())

    async def aclose(self) -> None:
        """Stop what is under way."""
        await self._environments.aclose()

    def _names(self) -> tuple[str, ...]:
        names = [NAME.match(requirement.strip()) for requirement in self.requirements]
        return tuple(name.group().replace("-", "_") for name in names if name)


def site_packages(python: Path) -> Path:
    """Return where the environment of *python* keeps its packages."""
    return python.parent.parent / "lib" / f"python{VERSION}" / "site-packages"


def imports_packages(program: Program) -> bool:
    """Return whether *program* imports anything that is not in the standard library."""
    names = (name for node in program.nodes_of(ast.Import, ast.ImportFrom) for name in _imported(node))
    return any(name.partition(".")[0] not in sys.stdlib_module_names for name in names)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
