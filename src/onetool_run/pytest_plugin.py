"""Lets pytest replay the programs that have a cassette beside them: ``pytest -p onetool_run.pytest_plugin``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from onetool_run.options import paths_of
from ot.runtime.cassettes.cassette import SUFFIX
from ot.runtime.cassettes.programs import SOURCE, TestedProgram, replay_program
from ot.workspace import Workspace


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take each cassette that has a program beside it."""
    program = file_path.with_name(file_path.name.removesuffix(SUFFIX) + SOURCE)
    found = file_path.name.endswith(SUFFIX) and program.is_file()
    return CassetteFile.from_parent(parent, path=file_path) if found else None  # pyright: ignore[reportUnknownMemberType] - pytest's own


class CassetteFile(pytest.File):
    """A cassette, with one test in it."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the test."""
        yield ReplayedProgram.from_parent(self, name=self.path.name.removesuffix(SUFFIX))  # pyright: ignore[reportUnknownMemberType] - as above


class ReplayedProgram(pytest.Item):
    """The test that a program does what its cassette has."""

    def runtest(self) -> None:
        """Replay it; no tool is called."""
        file = self.path.with_name(f"{self.name}{SOURCE}")
        program = TestedProgram(self.name, file, file.read_text(encoding="utf-8"))
        if differences := asyncio.run(_replay(program)):
            pytest.fail("\n".join(differences), pytrace=False)


async def _replay(program: TestedProgram) -> list[str]:
    app = Workspace.alone(paths_of(None, None, None))
    try:
        return await replay_program(program, app.run, app.picture.loaded.secrets.redact)
    finally:
        await app.aclose()
