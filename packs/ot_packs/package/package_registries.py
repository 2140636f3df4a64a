"""What PyPI and the npm registry say of a package, in one form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from arguments import check_text
from package_versions import NpmVersions, PythonVersions, VersionRules
from packaging.utils import canonicalize_name
from service_client import ServiceClient, at, rows_at, text_at

if TYPE_CHECKING:
    from package_tools import (
        PackageInfo,
        PackageRelease,
        Vulnerability,
    )  # help reads the keys of results from that file

PYPI_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
NPM_NAME = re.compile(r"(@[A-Za-z0-9~-][\w.~-]*/)?[A-Za-z0-9~_-][\w.~-]*", re.ASCII)
MAX_NAME = 214
SHORT_FORM = {"accept": "application/vnd.npm.install-v1+json"}
LINKS = {
    "homepage": ("homepage", "home"),
    "repository": ("repository", "source", "source code", "code", "github", "sources"),
    "documentation": ("documentation", "docs"),
    "changelog": ("changelog", "changes", "release notes", "releases", "history", "what's new", "news"),
}


@dataclass(frozen=True)
class PublishedPackage:
    """A package: its releases, newest first, and the latest that is meant for everyone."""

    name: str
    latest: str
    releases: list[PackageRelease]
    document: Any


class PyPI:
    """Reads what PyPI says."""

    name = "pypi"
    title = "PyPI"
    versions: VersionRules = PythonVersions()

    def check_name(self, name: object) -> str:
        """Return the name as PyPI writes it.

        Raises:
            TypeError, ValueError: It cannot be the name of a package.
        """
        text = check_text("name", name, MAX_NAME)
        if not PYPI_NAME.fullmatch(text):
            raise ValueError(f"{text!r} cannot be the name of a Python package")
        return canonicalize_name(text)

    async def fetch_package(self, api: ServiceClient, name: str, *, dates: bool = True) -> PublishedPackage:
        """Return the package *name*; its dates cost nothing here."""
        document = await api.json("pypi", name, "json")
        found = [_python_release(text, files) for text, files in _items(document, "releases")]
        releases = newest_first(self.versions, found)
        latest = _latest(releases) or text_at(document, "info", "version")
        return PublishedPackage(text_at(document, "info", "name") or name, latest, releases, document)

    async def info(self, api: ServiceClient, name: str, version: str) -> PackageInfo:
        """Return what is said of *version*, the latest where it is empty."""
        document = await api.json("pypi", name, *([version] if version else []), "json")
        told, links = at(document, "info"), dict(_links(document))
        return {
            "name": text_at(told, "name") or name,
            "version": text_at(told, "version") or version,
            "registry": self.name,
            "date": _first_upload(rows_at(document, "urls")),
            "summary": text_at(told, "summary"),
            "license": text_at(told, "license_expression") or text_at(told, "license")[:200],
            "requires": text_at(told, "requires_python"),
            "dependencies": _texts(at(told, "requires_dist")),
            "homepage": links.get("homepage", "") or text_at(told, "home_page"),
            "repository": links.get("repository", ""),
            "documentation": links.get("documentation", ""),
            "changelog": links.get("changelog", ""),
            "vulnerabilities": [_vulnerability(row) for row in rows_at(document, "vulnerabilities")],
        }

    def links(self, package: PublishedPackage) -> dict[str, str]:
        """Return where its pages are, by kind, and any others that it names."""
        named = {f"other {name}": url for name, url in _items(at(package.document, "info"), "project_urls")}
        home = {"homepage": text_at(package.document, "info", "home_page")}
        return {
            **home,
            **{key: url for key, url in named.items() if isinstance(url, str)},
            **dict(_links(package.document)),
        }


class Npm:
    """Reads what the npm registry says."""

    name = "npm"
    title = "the npm registry"
    versions: VersionRules = NpmVersions()

    def check_name(self, name: object) -> str:
        """Return the name.

        Raises:
            TypeError, ValueError: It cannot be the name of a package.
        """
        text = check_text("name", name, MAX_NAME)
        if not NPM_NAME.fullmatch(text):
            raise ValueError(f"{text!r} cannot be the name of an npm package")
        return text

    async def fetch_package(self, api: ServiceClient, name: str, *, dates: bool = True) -> PublishedPackage:
        """Return the package *name*; without *dates* much less is fetched."""
        document = await api.json(name, headers=None if dates else SHORT_FORM)
        times = at(document, "time")
        found = [_npm_release(text, row, text_at(times, text)) for text, row in _items(document, "versions")]
        releases = newest_first(self.versions, found)
        latest = text_at(document, "dist-tags", "latest") or _latest(releases)
        return PublishedPackage(text_at(document, "name") or name, latest, releases, document)

    async def info(self, api: ServiceClient, name: str, version: str) -> PackageInfo:
        """Return what is said of *version*, the latest where it is empty."""
        package = await self.fetch_package(api, name)
        version = version or package.latest
        told, links = at(package.document, "versions", version), self.links(package)
        if not told:
            raise LookupError(f"{self.title} has no version {version!r} of {name!r}")
        return {
            "name": package.name,
            "version": version,
            "registry": self.name,
            "date": text_at(package.document, "time", version)[:10],
            "summary": text_at(told, "description"),
            "license": text_at(told, "license") or text_at(told, "license", "type"),
            "requires": text_at(told, "engines", "node"),
            "dependencies": [f"{dep}@{wanted}" for dep, wanted in _items(told, "dependencies")],
            "homepage": links["homepage"],
            "repository": links["repository"],
            "documentation": "",
            "changelog": "",
        }

    def links(self, package: PublishedPackage) -> dict[str, str]:
        """Return where its pages are, by kind."""
        document = package.document
        repository = text_at(document, "repository") or text_at(document, "repository", "url")
        directory = text_at(document, "repository", "directory")
        return {"homepage": text_at(document, "homepage"), "repository": repository, "directory": directory}


Registry = PyPI | Npm
REGISTRIES: dict[str, Registry] = {"pypi": PyPI(), "npm": Npm()}


def newest_first(versions: VersionRules, releases: list[PackageRelease]) -> list[PackageRelease]:
    """Return the releases whose version can be read, the newest first."""
    read = [(version, release) for release in releases if (version := versions.parse(release["version"])) is not None]
    found: list[PackageRelease] = []
    for version, release in sorted(read, key=lambda pair: pair[0], reverse=True):
        found.append({**release, "prerelease": versions.is_prerelease(version)})
    return found


# ---------------------------------------------------------------- inside


def _latest(releases: list[PackageRelease]) -> str:
    meant = [release for release in releases if not release["withdrawn"]]
    final = [release for release in meant if not release["prerelease"]]
    return next((release["version"] for release in [*final, *meant, *releases]), "")


def _python_release(version: str, files: Any) -> PackageRelease:
    rows = rows_at({"files": files}, "files")
    withdrawn = all(at(row, "yanked") is True for row in rows)  # of some, every file was deleted
    return {"version": version, "date": _first_upload(rows), "prerelease": False, "withdrawn": withdrawn}


def _npm_release(version: str, row: Any, date: str) -> PackageRelease:
    return {"version": version, "date": date[:10], "prerelease": False, "withdrawn": bool(at(row, "deprecated"))}


def _first_upload(files: list[dict[str, Any]]) -> str:
    return min((text_at(file, "upload_time_iso_8601") or text_at(file, "upload_time") for file in files), default="")[
        :10
    ]


def _vulnerability(row: dict[str, Any]) -> Vulnerability:
    summary = text_at(row, "summary") or text_at(row, "details")[:300]
    return {"id": text_at(row, "id"), "summary": summary, "fixed_in": _texts(at(row, "fixed_in"))}


def _links(document: Any) -> list[tuple[str, str]]:
    """Return the addresses of a Python package's pages by kind, for the labels in use."""
    labels = {label.strip().lower(): url for label, url in _items(at(document, "info"), "project_urls")}
    found = ((kind, next((labels[name] for name in names if name in labels), "")) for kind, names in LINKS.items())
    return [(kind, url) for kind, url in found if isinstance(url, str) and url]


def _items(value: Any, key: str) -> list[tuple[str, Any]]:
    found = at(value, key)
    return list(cast("dict[str, Any]", found).items()) if isinstance(found, dict) else []


def _texts(value: Any) -> list[str]:
    return [text for text in cast("list[Any]", value) if isinstance(text, str)] if isinstance(value, list) else []
