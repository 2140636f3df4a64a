"""A result store on a desk: its directory, its clock, and short ways to use both."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from ot.output import result_lines
from ot.output.file_blobs import FileBlobs
from ot.output.result_blobs import ResultMeta
from ot.output.result_pages import ResultPage
from ot.output.result_store import ResultStore

TTL = 3600.0
PLENTY = 1 << 40
ME = "uid:1000"
CORPUS = Path(__file__).parents[1] / "corpus" / "bad_inputs.yaml"


@dataclass
class Clock:
    """A clock that only tests move; it starts at the real time, as files' own times do."""

    now: float = field(default_factory=time.time)

    def __call__(self) -> float:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += seconds


def file_store(
    directory: Path,
    ttl: float = TTL,
    clock: Callable[[], float] = time.time,
    *,
    max_total_bytes: int = PLENTY,
    max_page_bytes: int = 50_000,
) -> ResultStore:
    """Return a store whose results are files in *directory*."""
    blobs = FileBlobs(directory, ttl=ttl, max_total_bytes=max_total_bytes, clock=clock)
    return ResultStore(
        lambda _: blobs, ttl=ttl, max_total_bytes=max_total_bytes, max_page_bytes=max_page_bytes, clock=clock
    )


@dataclass
class Desk:
    """One store and what surrounds it."""

    path: Path
    ttl: float = TTL
    max_total_bytes: int = PLENTY
    max_page_bytes: int = 50_000
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.store = self.another_server()

    def another_server(self, clock: Clock | None = None) -> ResultStore:
        clock = clock or self.clock
        return file_store(
            self.path, self.ttl, clock, max_total_bytes=self.max_total_bytes, max_page_bytes=self.max_page_bytes
        )

    def put(self, *chunks: bytes | str, tool: str = "demo.list", owner: str = ME) -> ResultMeta:
        return self.store.put(chunks, tool=tool, owner=owner)

    def page(self, handle: str, **query: Any) -> ResultPage:
        return self.store.page(handle, owner=ME, **query)

    def file(self, handle: str, suffix: str) -> Path:
        return self.path / f"result-{handle}{suffix}"

    def names(self) -> set[str]:
        return {entry.name for entry in os.scandir(self.path)} if self.path.exists() else set()


def files_of(*results: ResultMeta) -> set[str]:
    """Return the names of the files that stored results have."""
    return {f"result-{result.handle}{suffix}" for result in results for suffix in (".txt", ".idx", ".meta.json")}


def read_all(desk: Desk, handle: str) -> bytes:
    """Return a result's whole content."""
    with desk.store.open_content(handle, owner=ME) as content:
        return b"".join(iter(lambda: content.read(65_536), b""))


def corpus_items(group: str) -> list[Any]:
    """Return the items of one group of the corpus of bad inputs."""
    groups = yaml.load(CORPUS.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["groups"]
    return next(entry["items"] for entry in groups if entry["group"] == group)


@contextmanager
def small_blocks(block: int = 8, long_line: int = 1 << 20, overlap: int = 16) -> Generator[None]:
    """Let blocks be so small that short texts have many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_lines, "BLOCK", block)
        patch.setattr(result_lines, "LONG_LINE", long_line)
        patch.setattr(result_lines, "OVERLAP", overlap)
        patch.setattr(result_lines, "FLUSH", 2 * block)
        yield


def lines_of(text: str) -> list[str]:
    """Return the lines of *text* as a result has them: only a newline ends one."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def joined(pages: Iterable[ResultPage]) -> list[str]:
    """Return the lines of several pages one after the other."""
    return [line for page in pages for line in page.lines]
