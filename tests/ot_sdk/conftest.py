"""Real workers for the tests, ended with them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from worker_client import PACKS, NewWorker, WorkerClient, WritePack


@pytest.fixture
def new_worker() -> Iterator[NewWorker]:
    """Start workers that have loaded nothing yet."""
    workers: list[WorkerClient] = []

    def start(python: str = sys.executable) -> WorkerClient:
        workers.append(WorkerClient(python))
        return workers[-1]

    yield start
    for worker in workers:
        worker.close()
    # Whatever a tool wrote, and wherever: the wire carried messages only, each an answer to a question.
    assert [0] * len(workers) == [worker.reader.skipped for worker in workers]
    assert [[]] * len(workers) == [worker.unknown for worker in workers]


@pytest.fixture
def plain(new_worker: NewWorker) -> WorkerClient:
    """A worker with the pack of plain tools."""
    worker = new_worker()
    worker.init(PACKS / "plain_tools.py")
    return worker


@pytest.fixture
def mixed(new_worker: NewWorker) -> WorkerClient:
    """A worker with the pack that has async tools."""
    worker = new_worker()
    worker.init(PACKS / "mixed_tools.py")
    return worker


@pytest.fixture
def write_pack(tmp_path: Path) -> WritePack:
    """Write the text of a pack called trial, and return its file."""

    def write(source: str) -> Path:
        file = tmp_path / "trial" / "trial_tools.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(dedent(source), encoding="utf-8")
        return file

    return write
