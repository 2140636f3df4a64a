# /// script
# requires-python = ">=3.12"
# dependencies = ["httpx2>=2.16,<3", "packaging>=26,<27", "semantic-version>=2.10,<3"]
# ///
"""Look up versions, changelogs and outdated requirements of Python and npm packages."""

from __future__ import annotations

# ruff: noqa: E402 - a pack file opens with its name and its tools
pack = "package"

__all__ = ["changelog", "compare", "info", "latest", "versions"]
__ot_read_only__ = ["changelog", "compare", "info", "latest", "versions"]

import time
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

from arguments import check_choice
from package_changes import VersionNotes, find_notes, find_repository
from package_registries import REGISTRIES, PublishedPackage, Registry
from package_requirements import RequiredPackage, read_requirements
from package_versions import behind
from service_client import ServiceClient, WebService, ask_each, asking, check_timeout, check_url

import ot_sdk
from ot_sdk.numbers import check_number

RegistryName = Literal["pypi", "npm"]
MAX_BYTES = 96 << 20
"""Some packages have had thousands of versions, and the registry says much of each."""
PARALLEL = 8


@dataclass(frozen=True)
class Config:
    """The settings ``tools.package``."""

    pypi_url: str = "https://pypi.org"
    """The index of Python packages, or a mirror that speaks its JSON API."""
    npm_url: str = "https://registry.npmjs.org"
    """The registry of npm packages, or a mirror."""
    github_url: str = "https://api.github.com"
    """Where releases are read for changelogs; a GitHub Enterprise server has its own address."""
    timeout: float = 25.0
    """Seconds for one call, repeated requests included."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        for name in ("pypi_url", "npm_url", "github_url"):
            check_url(name, getattr(self, name))
        check_timeout("timeout", self.timeout)


class PackageRelease(TypedDict):
    """A version; ``withdrawn`` where its makers took it back (yanked) or advise against it (deprecated)."""

    version: str
    date: str
    prerelease: bool
    withdrawn: bool


class Vulnerability(TypedDict):
    """A known weakness of a version."""

    id: str
    summary: str
    fixed_in: list[str]


class PackageInfo(TypedDict):
    """What a registry says of one version of a package; ``requires`` is the Python or Node that it needs."""

    name: str
    version: str
    registry: str
    date: str
    summary: str
    license: str
    requires: str
    dependencies: list[str]
    homepage: str
    repository: str
    documentation: str
    changelog: str
    vulnerabilities: NotRequired[list[Vulnerability]]


class LatestVersion(TypedDict):
    """The version that is meant for everyone now."""

    name: str
    version: str
    date: str
    registry: str


class ComparedRequirement(TypedDict):
    """A requirement beside the newest version; ``behind`` is 'major', 'minor', 'patch' or empty.

    ``latest_date`` is empty for npm, which tells no dates to those who ask for many packages.
    """

    name: str
    required: str
    allowed: str
    latest: str
    latest_date: str
    behind: str
    error: str


class VersionChange(TypedDict):
    """A version and what is written about it."""

    version: str
    date: str
    title: str
    text: str
    url: str


class PackageChangelog(TypedDict):
    """What changed; ``source`` is 'releases', 'file' or empty, and ``note`` says why something is missing."""

    name: str
    changes: list[VersionChange]
    source: str
    url: str
    note: str


async def latest(*, name: str, registry: RegistryName = "pypi") -> LatestVersion:
    """Return the newest version of a package and its date.

    Args:
        name: The package.
        registry: 'pypi' for Python, 'npm' for JavaScript.

    Returns:
        Name, version and date; versions before a release and those taken back do not count.

    Example:
        package.latest(name="httpx")
    """
    place, named = _place(registry, name)
    async with asking(_service(place)) as api:
        package = await _fetch(api, place, named)
    if not package.latest:
        raise LookupError(f"{place.title} names no version of {named!r}")
    dates = {release["version"]: release["date"] for release in package.releases}
    return {
        "name": package.name,
        "version": package.latest,
        "date": dates.get(package.latest, ""),
        "registry": place.name,
    }


async def versions(
    *, name: str, registry: RegistryName = "pypi", prereleases: bool = False, limit: int = 50
) -> list[PackageRelease]:
    """List the versions (releases) of a package with their dates, newest first.

    Args:
        name: The package.
        registry: 'pypi' for Python, 'npm' for JavaScript.
        prereleases: Also list versions that come before a release.
        limit: The most versions to return, 1 to 1000.

    Returns:
        Version, date, whether it comes before a release, and whether its makers took it back.

    Example:
        package.versions(name="react", registry="npm", limit=5)
    """
    place, named = _place(registry, name)
    check_number("limit", limit, 1, 1000)
    async with asking(_service(place)) as api:
        package = await _fetch(api, place, named)
    return [release for release in package.releases if prereleases or not release["prerelease"]][:limit]


async def info(*, name: str, registry: RegistryName = "pypi", version: str = "") -> PackageInfo:
    """Tell what a package is: summary, licence, dependencies, addresses, known vulnerabilities (CVEs).

    Args:
        name: The package.
        registry: 'pypi' for Python, 'npm' for JavaScript.
        version: The version to tell about; the latest when left out.

    Returns:
        What the registry says of that version; vulnerabilities for Python only.

    Example:
        package.info(name="jinja2", version="3.1.2")
    """
    place, named = _place(registry, name)
    if version:
        _check_version(place, "version", version)
    async with asking(_service(place)) as api:
        try:
            return await place.info(api, named, version)
        except LookupError:
            of = f" {version}" if version else ""
            raise LookupError(f"{place.title} has no package {named!r}{of}") from None


async def changelog(
    *, name: str, registry: RegistryName = "pypi", since: str = "", until: str = "", limit: int = 10
) -> PackageChangelog:
    """Tell what changed between two versions of a package: its releases or its changelog on GitHub.

    Args:
        name: The package.
        registry: 'pypi' for Python, 'npm' for JavaScript.
        since: The version that you have; it is left out itself.
        until: The last version to tell about; the latest when left out.
        limit: The most versions to return, 1 to 100, the newest of them.

    Returns:
        Version, date and notes of each version, newest first; a note says what is missing and why.

    Example:
        package.changelog(name="httpx", since="0.27.0", until="0.28.1")
    """
    place, named = _place(registry, name)
    check_number("limit", limit, 1, 100)
    first = _check_version(place, "since", since) if since else None
    last = _check_version(place, "until", until) if until else None
    began = time.monotonic()
    async with asking(_service(place)) as api:
        package = await _fetch(api, place, named)
    last = last if last is not None else place.versions.parse(package.latest)
    between = _between(place, package.releases, first, last)
    chosen = between[:limit]
    notes, note = await _notes(place, package, chosen, _config().timeout - (time.monotonic() - began))
    if since and (older := len(between) - len(chosen)):
        note = f"{older} older versions are left out: raise limit{note and '; '}{note}"
    return {
        "name": package.name,
        "changes": [_change(place, release, notes) for release in chosen],
        "source": notes.source,
        "url": notes.url or place.links(package).get("changelog", ""),
        "note": note,
    }


async def compare(
    *, requirements: list[str] | dict[str, str] | str, registry: RegistryName = "pypi"
) -> list[ComparedRequirement]:
    """Compare requirements with the newest versions: which packages are outdated, and by how much.

    Args:
        requirements: A list like ['httpx>=0.27,<1'], a dict of ranges by name, or the text of a requirements.txt,
            pyproject.toml or package.json.
        registry: 'pypi' for Python, 'npm' for JavaScript.

    Returns:
        For each the newest version that the requirement allows, the latest there is, and by what it is behind, or an
        error; an error of all is raised.

    Example:
        package.compare(requirements=["httpx>=0.27,<0.28", "rich"])
    """
    place = REGISTRIES[check_choice("registry", registry, tuple(REGISTRIES))]
    wanted = read_requirements(place, requirements)
    names = list(dict.fromkeys(required.name for required in wanted if not required.problem))

    async def ask(api: ServiceClient, name: str) -> PublishedPackage | LookupError:
        try:
            return await _fetch(api, place, name, dates=False)
        except LookupError as error:
            return error

    found = dict(zip(names, await ask_each(_service(place), names, ask, PARALLEL), strict=True))
    return [_compare(place, required, found.get(required.name)) for required in wanted]


# ---------------------------------------------------------------- asking


def _config() -> Config:
    return ot_sdk.config()


def _place(registry: str, name: str) -> tuple[Registry, str]:
    place = REGISTRIES[check_choice("registry", registry, tuple(REGISTRIES))]
    return place, place.check_name(name)


def _service(place: Registry) -> WebService:
    settings = _config()
    url = settings.npm_url if place.name == "npm" else settings.pypi_url
    return WebService(name=place.title, pack=pack, url=url, timeout=settings.timeout, max_bytes=MAX_BYTES)


async def _fetch(api: ServiceClient, place: Registry, name: str, *, dates: bool = True) -> PublishedPackage:
    try:
        return await place.fetch_package(api, name, dates=dates)
    except LookupError:
        raise LookupError(f"{place.title} has no package {name!r}") from None


def _check_version(place: Registry, name: str, text: object) -> Any:
    version = place.versions.parse(text) if isinstance(text, str) else None
    if version is None:
        raise ValueError(f"{name} must be a version such as '1.2.3', got {text!r:.100}")
    return version


# ---------------------------------------------------------------- comparing


def _compare(
    place: Registry, required: RequiredPackage, package: PublishedPackage | Exception | None
) -> ComparedRequirement:
    row: ComparedRequirement = {
        "name": required.name,
        "required": required.wanted,
        "allowed": "",
        "latest": "",
        "latest_date": "",
        "behind": "",
        "error": required.problem,
    }
    if not isinstance(package, PublishedPackage):
        return {**row, "error": row["error"] or str(package)}
    newest = place.versions.parse(package.latest)
    if newest is None:
        return {**row, "error": f"{place.title} names no version of it"}
    row["latest"] = package.latest
    row["latest_date"] = next((one["date"] for one in package.releases if one["version"] == package.latest), "")
    allowed = _newest_allowed(place, required, package)
    if allowed is None:
        return {**row, "error": f"no version fits {required.wanted!r}"}
    return {**row, "allowed": allowed, "behind": behind(place.versions, place.versions.parse(allowed), newest)}


def _newest_allowed(place: Registry, required: RequiredPackage, package: PublishedPackage) -> str | None:
    """Return the newest version within the range; one before a release or taken back only if there is no other."""
    fits = place.versions.within(required.wanted)
    within = [one for one in package.releases if fits(place.versions.parse(one["version"]))]
    if any(one["version"] == package.latest for one in within):
        return package.latest
    meant = [one for one in within if not one["prerelease"] and not one["withdrawn"]]
    return next((one["version"] for one in [*meant, *within]), None)


# ---------------------------------------------------------------- changes


def _between(place: Registry, releases: list[PackageRelease], first: Any, last: Any) -> list[PackageRelease]:
    """Return the releases after *first*, up to *last*."""
    found: list[PackageRelease] = []
    for release in releases:
        version = place.versions.parse(release["version"])
        after = first is None or version > first
        if after and (last is None or version <= last) and (not release["prerelease"] or version == last):
            found.append(release)
    return found


async def _notes(
    place: Registry, package: PublishedPackage, chosen: list[PackageRelease], seconds: float
) -> tuple[VersionNotes, str]:
    """Return what is written about the *chosen* releases, and why there is not more."""
    nothing, links = VersionNotes("", "", {}), place.links(package)
    repository = find_repository(links)
    if not chosen:
        return nothing, "there is no version in between"
    if repository is None:
        where = links.get("changelog") or links.get("homepage") or ""
        read = f"; its changelog may be at {where}: web.fetch reads it" if where else ""
        return nothing, f"{place.title} names no repository on GitHub{read}"
    github = WebService("GitHub", pack, _config().github_url, max(1.0, seconds), 16 << 20)
    wanted = {place.versions.parse(release["version"]) for release in chosen}
    try:
        async with asking(github) as api:
            notes = await find_notes(api, package.name, repository, place.versions, wanted)
    except (OSError, LookupError, RuntimeError, ValueError) as error:
        return nothing, f"the notes could not be read: {error}"
    missing = len(wanted) - len(notes.by_version)
    return notes, f"nothing was found about {missing} of these versions" if missing else ""


def _change(place: Registry, release: PackageRelease, notes: VersionNotes) -> VersionChange:
    note = notes.by_version.get(place.versions.parse(release["version"]))
    return {
        "version": release["version"],
        "date": release["date"],
        "title": note.title if note else "",
        "text": note.text if note else "",
        "url": note.url if note else "",
    }
