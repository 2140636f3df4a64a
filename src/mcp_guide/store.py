"""Store: the documents of the project and of the user, the project's first, where the environment says they lie."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypedDict

from mcp_guide.document import Document, DocumentInfo, Folder, GuideError, compose, info_of

FOLDER = ".guide"
PROJECT, USER, EXAMPLES = "MCP_GUIDE_PROJECT", "MCP_GUIDE_USER_DIR", "MCP_INCLUDE_EXAMPLE_TOOLS"
HOST_DIRECTORY = "OT_CWD"
"""Where OneTool works, if not in the working directory of its process; as its pack the guide works there, too."""
MAX_SEARCHED_BYTES = 32 << 20
MAX_LINES = 3
MAX_LINE = 200


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


class Category(TypedDict):
    """A category and how many documents it has."""

    name: str
    documents: int


class FoundDocument(DocumentInfo):
    """What a listing says of a document that was found, and the first lines that fit."""

    lines: list[str]


class Saved(TypedDict):
    """What became of a document."""

    category: str
    name: str
    created: bool


class Removed(TypedDict):
    """Which document is gone."""

    category: str
    name: str


@dataclass(frozen=True, slots=True)
class Store:
    """Reads both folders; writes the project's alone, for the user's own belongs to all projects."""

    project: Folder
    user: Folder

    @classmethod
    def of(cls, environment: GuideEnvironment) -> Self:
        """Return the store that the environment names."""
        own = Folder(environment.project / FOLDER, "project", within=environment.project)
        return cls(own, Folder(environment.user, "user"))

    def categories(self) -> list[Category]:
        """Return all categories that have documents."""
        names = sorted({*self.project.categories(), *self.user.categories()})
        counted: list[Category] = [{"name": name, "documents": len(self._sources(name))} for name in names]
        return [category for category in counted if category["documents"]]

    def documents(self, category: str | None = None) -> list[DocumentInfo]:
        """Return what is known of all documents, or of those of a category.

        Raises:
            GuideError: There is no such category.
        """
        if category is not None:
            self._require(category)
        return [info_of(document) for document in self._all(category)]

    def get(self, category: str, name: str) -> Document:
        """Return a document.

        Raises:
            GuideError: There is none; the error names what there is.
        """
        found = self.project.get(category, name) or self.user.get(category, name)
        if found is None:
            self._require(category)
            raise _missing(f"there is no document {name!r} in {category}", [*self._sources(category)])
        return found

    def search(self, query: str, category: str | None, limit: int) -> list[FoundDocument]:
        """Return the documents that hold every word of *query*, those with more of them first."""
        words = query.casefold().split()
        if category is not None:
            self._require(category)
        scored = [(score, document) for document in self._all(category) if (score := _score(document, words))]
        best = sorted(scored, key=lambda found: (-found[0], found[1]["category"], found[1]["name"]))
        return [{**info_of(document), "lines": _lines(document, words)} for _, document in best[:limit]]

    def create(
        self, category: str, name: str, text: str, *, title: str, description: str, tags: Sequence[str], replace: bool
    ) -> Saved:
        """Write a document of the project.

        Raises:
            GuideError: It may not be written; the error says why.
        """
        content = compose(title, description, tags, text)
        return {
            "category": category,
            "name": name,
            "created": self.project.put(category, name, content, replace=replace),
        }

    def remove(self, category: str, name: str) -> Removed:
        """Remove a document of the project.

        Raises:
            GuideError: The project has none of this name.
        """
        if not self.project.remove(category, name):
            raise _missing(f"the project has no document {name!r} in {category}", self.project.names(category))
        return {"category": category, "name": name}

    def _sources(self, category: str) -> dict[str, Folder]:
        """Return the folder of every document of a category, by name."""
        both = [(name, folder) for folder in (self.user, self.project) for name in folder.names(category)]
        return dict(sorted(dict(both).items()))

    def _all(self, category: str | None) -> Iterator[Document]:
        left = MAX_SEARCHED_BYTES
        for chosen in [category] if category else [found["name"] for found in self.categories()]:
            for name, folder in self._sources(chosen).items():
                document = _readable(folder, chosen, name)
                if document and (left := left - len(document["text"])) >= 0:
                    yield document

    def _require(self, category: str) -> None:
        names = [found["name"] for found in self.categories()]
        if category not in names:
            raise _missing(f"there is no category {category[:80]!r}", names)


def _readable(folder: Folder, category: str, name: str) -> Document | None:
    try:
        return folder.get(category, name)
    except GuideError:
        return None  # one bad file must not hide the others; asked for by name it says what is wrong


def _missing(error: str, names: Sequence[str]) -> GuideError:
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return GuideError(error, "not_found", f"There are: {shown}." if names else "There are none yet.")


def _score(document: Document, words: Sequence[str]) -> int:
    head = " ".join([document["category"], document["name"], document["title"], *document["tags"]]).casefold()
    text = f"{document['description']}\n{document['text']}".casefold()
    counts = [10 * head.count(word) + text.count(word) for word in words]
    return sum(counts) if all(counts) else 0


def _lines(document: Document, words: Sequence[str]) -> list[str]:
    fitting = (line.strip() for line in document["text"].splitlines() if any(word in line.casefold() for word in words))
    return [line[:MAX_LINE] for line, _ in zip(fitting, range(MAX_LINES), strict=False)]
