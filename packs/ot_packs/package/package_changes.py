"""Finds what is written about the versions of a package: in GitHub's releases, or in a file of its repository."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from package_versions import VersionRules
from service_client import ServiceClient, rows_at, text_at

REPOSITORY = re.compile(
    r"(?:(?:git\+)?(?:https?|git|ssh)://(?:[^@/\s]+@)?(?:www\.)?github\.com[/:]|git@github\.com:|github:)"
    r"(?P<owner>[A-Za-z0-9][\w-]*)/(?P<name>[\w.-]+?)(?:\.git)?"
    r"(?:/blob/(?P<ref>[\w.-]+)/(?P<path>[\w./ -]+))?(?:[/#?].*)?",
    re.ASCII,
)
FILE = re.compile(
    r"(changelog|changes|history|news|releases?|release[-_ ]?notes)(\.(md|rst|txt|markdown))?", re.IGNORECASE
)
HEADING = re.compile(
    r"^#{1,4}[ \t]+(?P<marked>[^\n]{1,200})$|^(?P<underlined>[^\n]{1,200})\n[=\-~^*\"]{3,}[ \t]*$", re.MULTILINE
)
NUMBER = re.compile(r"(?<![\w.])v?(\d+\.\d(?:[0-9A-Za-z.+-]*[0-9A-Za-z])?)", re.ASCII)
RAW = {"accept": "application/vnd.github.raw+json"}
PAGES, PER_PAGE = 3, 100
MAX_NOTES = 8_000


@dataclass(frozen=True)
class GitHubRepository:
    """A repository on GitHub, and the file there that a package names as its changelog, if any."""

    owner: str
    name: str
    ref: str = ""
    path: str = ""
    directory: str = ""


@dataclass(frozen=True)
class VersionNote:
    """What is written about one version."""

    title: str
    text: str
    url: str


@dataclass(frozen=True)
class VersionNotes:
    """What is written about versions, and where."""

    source: str
    url: str
    by_version: Mapping[Any, VersionNote]


def find_repository(links: Mapping[str, str]) -> GitHubRepository | None:
    """Return the repository that *links* name; one that also names the changelog's file is preferred."""
    first = ("changelog", "repository", "homepage")
    ordered = [*(links.get(kind, "") for kind in first), *(url for kind, url in links.items() if kind not in first)]
    found = [match for url in ordered if len(url) <= 500 and (match := REPOSITORY.fullmatch(url.strip()))]
    if not found or found[0]["name"] in (".", ".."):
        return None
    match = next((match for match in found if match["path"]), found[0])
    return GitHubRepository(
        match["owner"], match["name"], match["ref"] or "", match["path"] or "", links.get("directory", "").strip("/")
    )


async def find_notes(
    api: ServiceClient, package: str, repository: GitHubRepository, versions: VersionRules, wanted: set[Any]
) -> VersionNotes:
    """Return the notes about *wanted* versions from where there are most.

    Raises:
        OSError, LookupError, RuntimeError, ValueError: GitHub could not be asked.
    """
    ways = [_in_file, _in_releases] if repository.path else [_in_releases, _in_file]
    best = VersionNotes("", "", {})
    for way in ways:
        found = await way(api, package, repository, versions, wanted)
        if len(found.by_version) > len(best.by_version):
            best = found
        if len(best.by_version) * 2 >= len(wanted):
            break
    return best


async def _in_releases(
    api: ServiceClient, package: str, at: GitHubRepository, versions: VersionRules, wanted: set[Any]
) -> VersionNotes:
    found: dict[Any, VersionNote] = {}
    for page in range(1, PAGES + 1):
        params = [("per_page", PER_PAGE), ("page", page)]
        rows = rows_at({"rows": await api.json("repos", at.owner, at.name, "releases", params=params)}, "rows")
        for row in rows:
            version = versions.parse(_tag_version(text_at(row, "tag_name"), package))
            if version in wanted and row.get("draft") is not True:
                note = VersionNote(text_at(row, "name"), _short(text_at(row, "body")), text_at(row, "html_url"))
                found.setdefault(version, note)
        if len(rows) < PER_PAGE or len(found) == len(wanted):
            break
    return VersionNotes("releases", f"https://github.com/{at.owner}/{at.name}/releases", found)


async def _in_file(
    api: ServiceClient, package: str, at: GitHubRepository, versions: VersionRules, wanted: set[Any]
) -> VersionNotes:
    contents, ref = ("repos", at.owner, at.name, "contents"), [("ref", at.ref)] if at.ref else []
    path = at.path or await _file_in(api, contents, at.directory)
    if not path:
        return VersionNotes("", "", {})
    answer = await api.get(*contents, *path.split("/"), params=ref, headers=RAW)
    url = f"https://github.com/{at.owner}/{at.name}/blob/{at.ref or 'HEAD'}/{path}"
    sections = split_sections(answer.body.decode(errors="replace"), versions)
    found: dict[Any, VersionNote] = {}
    for version, title, text in sections:
        if version in wanted:
            found.setdefault(version, VersionNote(title, text, url))
    return VersionNotes("file", url, found)


async def _file_in(api: ServiceClient, contents: tuple[str, ...], directory: str) -> str:
    """Return the path of the changelog in *directory*, else at the top, or nothing."""
    for folder in dict.fromkeys((directory, "")):
        listed = await api.json(*contents, *(folder.split("/") if folder else ()))
        for row in rows_at({"rows": listed}, "rows"):
            name = text_at(row, "name")
            if text_at(row, "type") == "file" and FILE.fullmatch(name):
                return f"{folder}/{name}".strip("/")
    return ""


def split_sections(text: str, versions: VersionRules) -> Iterable[tuple[Any, str, str]]:
    """Yield version, heading and text of each section whose heading, Markdown or reStructuredText, names a version."""
    heads: list[tuple[Any, re.Match[str]]] = []
    for match in HEADING.finditer(text):
        numbers = NUMBER.findall(match["marked"] or match["underlined"])
        version = next((read for number in numbers if (read := versions.parse(number)) is not None), None)
        if version is not None:
            heads.append((version, match))
    ends = [match.start() for _, match in heads[1:]] + [len(text)]
    for (version, match), end in zip(heads, ends, strict=True):
        title = (match["marked"] or match["underlined"]).strip()
        yield version, title, _short(text[match.end() : end].strip())


def _short(text: str) -> str:
    return text if len(text) <= MAX_NOTES else f"{text[:MAX_NOTES]}\n[{len(text) - MAX_NOTES:,} more characters]"


def _tag_version(tag: str, package: str) -> str:
    """Return the version that a tag names, for tags like v1.2, name-1.2, name@1.2 and name/v1.2 of this package."""
    for name in (package, package.rpartition("/")[2]):
        for sign in ("@", "-", "/", "_", "=="):
            tag = tag.removeprefix(f"{name}{sign}")
    return tag.removeprefix("release-").removeprefix("v")
