"""How the versions and ranges of each registry are read and compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from semantic_version import NpmSpec
from semantic_version import Version as SemanticVersion

MAX_VERSION = 100
MAX_RANGE = 300

Parts = tuple[int, int, int]


class VersionRules(Protocol):
    """The rules of one registry; a version is whatever ``parse`` makes of its text."""

    def parse(self, text: str) -> Any:
        """Return what can be compared, or None where the version is malformed."""
        ...

    def parts(self, version: Any) -> Parts:
        """Return major, minor and patch."""
        ...

    def is_prerelease(self, version: Any) -> bool:
        """Return whether it comes before a release."""
        ...

    def within(self, text: str) -> Callable[[Any], bool]:
        """Return what says whether the range *text* allows a version.

        Raises:
            ValueError: The range of versions is malformed.
        """
        ...


class PythonVersions:
    """The rules of Python packages."""

    def parse(self, text: str) -> Version | None:
        """Return as above."""
        try:
            return Version(text) if len(text) <= MAX_VERSION else None
        except InvalidVersion:
            return None

    def parts(self, version: Version) -> Parts:
        """Return as above."""
        return version.major, version.minor, version.micro

    def is_prerelease(self, version: Version) -> bool:
        """Return as above."""
        return version.is_prerelease

    def within(self, text: str) -> Callable[[Version], bool]:
        """Return as above."""
        try:
            allowed = SpecifierSet(text) if len(text) <= MAX_RANGE else None
        except InvalidSpecifier:
            allowed = None
        if allowed is None:
            raise ValueError(f"{text!r:.80} is not a range of versions")
        return lambda version: allowed.contains(version, prereleases=True)


class NpmVersions:
    """The rules of npm packages."""

    def parse(self, text: str) -> SemanticVersion | None:
        """Return as above."""
        try:
            return SemanticVersion(text.removeprefix("v")) if len(text) <= MAX_VERSION else None
        except ValueError:
            return None

    def parts(self, version: SemanticVersion) -> Parts:
        """Return as above."""
        return version.major or 0, version.minor or 0, version.patch or 0

    def is_prerelease(self, version: SemanticVersion) -> bool:
        """Return as above."""
        return bool(version.prerelease)

    def within(self, text: str) -> Callable[[SemanticVersion], bool]:
        """Return as above."""
        try:
            allowed = NpmSpec(text.strip() or "*") if len(text) <= MAX_RANGE else None
        except ValueError:
            allowed = None
        if allowed is None:
            raise ValueError(f"{text!r:.80} is not a range of versions")
        return allowed.match


def behind(versions: VersionRules, allowed: Any, latest: Any) -> str:
    """Return by what *allowed* is behind *latest*: 'major', 'minor', 'patch', or nothing."""
    if allowed >= latest:
        return ""
    pairs = zip(versions.parts(allowed), versions.parts(latest), ("major", "minor", "patch"), strict=True)
    return next((name for mine, newest, name in pairs if mine != newest), "patch")
