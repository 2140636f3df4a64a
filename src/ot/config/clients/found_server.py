"""What was found in another client's files, in OneTool's own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

type Scope = Literal["user", "project"]
type Rule = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class Place:
    """One file of a client: the user's own for all projects, or of the project in the working directory."""

    file: Path
    scope: Scope
    repository: bool = False
    """Whether the file came with the repository, so that the user has not said what it says."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What finding and reading depends on: the machine, its user, and the project."""

    home: Path
    cwd: Path
    environ: Mapping[str, str] = field(repr=False)
    platform: str

    def in_project(self, *parts: str) -> Place:
        """Return a file of the project in the working directory, which is the user's own in the home directory."""
        return Place(self.cwd.joinpath(*parts), "project", repository=self.cwd != self.home)

    def application(self, name: str) -> Path:
        """Return where an application called *name* keeps its settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support" / name
        if self.platform == "win32":
            return Path(self.environ.get("APPDATA") or self.home / "AppData" / "Roaming") / name
        return Path(self.environ.get("XDG_CONFIG_HOME") or self.home / ".config") / name


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server as OneTool would write it; ``skipped`` says why it cannot be taken."""

    name: str
    client: str
    place: Place
    entry: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    notes: tuple[str, ...] = ()
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class FoundRule:
    """A tool, or all of a server's tools (``*``), that the user allowed, denied or wants to be asked about."""

    rule: Rule
    server: str
    tool: str
    place: Place


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that one file says."""

    servers: tuple[FoundServer, ...] = ()
    rules: tuple[FoundRule, ...] = ()
    off: frozenset[str] = frozenset()
    """Servers that are switched off, in whichever file of the client they stand."""
    problems: tuple[str, ...] = ()
    repository: bool = False


@dataclass(frozen=True, slots=True)
class Client:
    """A client whose servers can be taken over."""

    name: str
    title: str
    places: Callable[[Surroundings], tuple[Place, ...]]
    read: Callable[[bytes, Place, Surroundings], Found]
