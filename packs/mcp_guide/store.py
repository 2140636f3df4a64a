"""Store: the documents of the project and of the user, the project's first, where the environment says they lie."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypedDict

from mcp_core import ToolFailure
from mcp_guide.document import Document, DocumentInfo, compose, info_of
from mcp_guide.folder import Folder, Key, require_names
from mcp_guide.project_facts import facts_of
from mcp_guide.renderer import MARKS, render_template
from ot.introspect.search_index import Field, Rule, SearchIndex
from ot.introspect.search_words import words_of

FOLDER = ".guide"
PROJECT, USER = "MCP_GUIDE_PROJECT", "MCP_GUIDE_USER_DIR"
HOST_DIRECTORY = "OT_CWD"
"""Where OneTool works, if not in the working directory of its process; as its pack the guide works there, too."""

# How much a word counts there, and how many words there usually are.
NAMES: Rule = (8.0, 4)
SENTENCE: Rule = (7.0, 12)
TEXT: Rule = (2.0, 300)
LEAST = 0.3
"""What scores less than this share of the best is noise."""
MAX_SEARCHED = 2_000_000
"""So many characters of all texts are searched, of each its first ones."""
MAX_LINES = 3
MAX_LINE = 200


class Listing(TypedDict):
    """What there is, and the files that are not documents, with the reason."""

    documents: list[DocumentInfo]
    skipped: list[str]


class FoundDocument(TypedDict):
    """A document that was found, and its first lines that fit."""

    category: str
    name: str
    title: str
    lines: list[str]


@dataclass(frozen=True, slots=True)
class Store:
    """Reads both folders; writes the project's alone, for the user's own belongs to all projects."""

    project: Folder
    user: Folder

    @classmethod
    def of(cls, project: Path, user: Path) -> Self:
        """Return the store of a project's directory, and of a user's directory of documents."""
        return cls(Folder(project / FOLDER, "project", within=project), Folder(user, "user"))

    @classmethod
    def here(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Return the store that *variables* name, without them that of the working directory and ``~/.guide``."""
        project = variables.get(PROJECT) or variables.get(HOST_DIRECTORY) or "."
        return cls.of(_path(project), _path(variables.get(USER) or f"~/{FOLDER}"))

    def keys(self) -> list[Key]:
        """Return category and name of every document, in order."""
        return list(self._files())

    def documents(self, category: str | None = None) -> Listing:
        """Return the metadata of all documents, or of a category's."""
        found, skipped = self._read_all(category)
        return {"documents": [info_of(document) for document in found], "skipped": skipped}

    def get(self, name: str, category: str | None = None) -> Document:
        """Return a document; without a *category* the only one of that name."""
        require_names(name, name if category is None else category)
        files = self._files(category)
        found = [key for key in files if key[1] == name]
        if len(found) > 1:
            places = ", ".join(key[0] for key in found)
            raise ToolFailure(f"{name!r} is in {places}", "ambiguous", "Pass the category, too.")
        if not found:
            names = [key[1] if category else "/".join(key) for key in files]
            raise _missing(f"there is no document {name!r}" + (f" in {category}" if category else ""), names)
        folder, file = files[found[0]]
        return folder.read(found[0], file)

    def render(self, name: str, category: str | None, values: Mapping[str, Any]) -> Document:
        """Return a document with the project's facts and *values* filled in, if it is a template that can be."""
        document = self.get(name, category)
        if any(mark in document["text"] for mark in MARKS):
            facts = facts_of(self.project.within or self.project.root)
            text, error = render_template(document["text"], {"project": facts, "values": values})
            return {**document, "unrendered": error} if error else {**document, "text": text}
        return document

    def search(self, query: str, category: str | None, limit: int) -> list[FoundDocument]:
        """Return the documents that fit the words of *query*, the best first."""
        documents, _ = self._read_all(category)
        most = MAX_SEARCHED // max(1, len(documents))
        index = SearchIndex([found["name"] for found in documents], [_fields(found, most) for found in documents])
        hits = index.find(query).hits
        words = set(words_of(query))
        best = [documents[place] for place, score in hits[:limit] if score >= hits[0][1] * LEAST]
        return [
            {"category": one["category"], "name": one["name"], "title": one["title"], "lines": _lines(one, words)}
            for one in best
        ]

    def create(
        self, category: str, name: str, text: str, *, title: str, description: str, tags: Sequence[str], replace: bool
    ) -> str:
        """Write a document of the project and return what became of it."""
        new = self.project.put(category, name, compose(title, description, tags, text), replace=replace)
        return "created" if new else "replaced"

    def remove(self, category: str, name: str) -> str:
        """Remove a document of the project and return what became of it."""
        if not self.project.remove(category, name):
            names = [key[1] for key in self.project.list_files()[0] if key[0] == category]
            raise _missing(f"the project has no document {name!r} in {category}", names)
        return "removed"

    def _files(self, category: str | None = None) -> dict[Key, tuple[Folder, Path]]:
        """Return the paths of all documents, or of a category's, in order."""
        folders = (self.user, self.project)
        files = {key: (folder, file) for folder in folders for key, file in folder.list_files()[0].items()}
        chosen = {key: files[key] for key in sorted(files) if category in (None, key[0])}
        if category is not None and not chosen:
            raise _missing(f"there is no category {category[:80]!r}", [key[0] for key in files])
        return chosen

    def _read_all(self, category: str | None) -> tuple[list[Document], list[str]]:
        """Return the documents that can be read, and what was skipped: one bad file must not hide the others."""
        found: list[Document] = []
        skipped = [*self.user.list_files()[1], *self.project.list_files()[1]]
        for key, (folder, file) in self._files(category).items():
            try:
                found.append(folder.read(key, file))
            except ToolFailure as error:
                skipped.append(f"{folder.source}: {error.error}")
        return found, skipped


def _path(text: str) -> Path:
    # Unlike Path.expanduser it does not raise where there is no home.
    return Path(os.path.expanduser(text)).absolute()  # noqa: PTH111 - as above


def _missing(error: str, names: Iterable[str]) -> ToolFailure:
    known = sorted(set(names))
    shown = ", ".join(known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
    return ToolFailure(error, "not_found", f"There are: {shown}." if known else "There are none yet.")


def _fields(document: Document, most: int) -> tuple[Field, ...]:
    names = " ".join([document["name"], document["category"], *document["tags"]])
    said = f"{document['title']}. {document['description']}"
    return Field(names, *NAMES), Field(said, *SENTENCE), Field(document["text"][:most], *TEXT)


def _lines(document: Document, words: set[str]) -> list[str]:
    fitting = (line.strip() for line in document["text"].splitlines() if not words.isdisjoint(words_of(line)))
    return [line[:MAX_LINE] for line, _ in zip(fitting, range(MAX_LINES), strict=False)]
