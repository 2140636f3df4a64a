"""What becomes of programs as models write them: at once, and after one repair that the error's text gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from model_programs import PACKS, ModelProgram, all_programs
from program_repairer import repaired

from ot.runtime.engines.engine import Engine
from ot.runtime.engines.failures import HINT
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.reply import Reply
from ot.workspace import Workspace
from run_app import running_app

pytestmark = pytest.mark.anyio

NOT_PYTHON = {"m50", "m51"}
"""JavaScript: the error says that `run` takes Python, and only a model can write the program anew."""


@dataclass
class Score:
    """The ids of programs by how they ended."""

    at_once: set[str] = field(default_factory=set[str])
    repaired: set[str] = field(default_factory=set[str])
    failed: dict[str, str] = field(default_factory=dict[str, str])
    silent: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Answered, and with something else than the program means."""

    def note(self, program: ModelProgram, first: Reply, second: Reply) -> None:
        for reply in (first, second):
            if not reply.is_error and not program.is_answered(reply):
                self.silent[program.id] = reply.texts
        if program.is_answered(first):
            self.at_once.add(program.id)
        elif program.is_answered(second):
            self.repaired.add(program.id)
        else:
            self.failed[program.id] = first.texts[-1]

    def count(self, kind: str, *, with_repairs: bool = False) -> int:
        found = self.at_once | self.repaired if with_repairs else self.at_once
        return sum(name.startswith(kind) for name in found)


async def scored(directory: Path, engine: Callable[[], Engine]) -> Score:
    score = Score()
    async with running_app(directory, PACKS, engine=engine()) as app:
        for program in all_programs():
            first = await app.run(program.program)
            score.note(program, first, await _after_repair(app, program.program, first))
    return score


async def _after_repair(app: Workspace, program: str, reply: Reply) -> Reply:
    return await app.run(repaired(program, reply.texts[-1])) if reply.is_error else reply


async def test_the_exact_engine_answers_what_models_write(tmp_path: Path) -> None:
    score = await scored(tmp_path, lambda: ExactEngine(processes=4))
    correct = [program.id for program in all_programs() if not program.is_mistake]
    assert [name for name in correct if name not in score.at_once] == [], score.failed
    assert score.silent == {}
    assert score.count("m") >= 40
    assert score.count("m", with_repairs=True) >= 55, score.failed


async def test_the_portable_engine_answers_most_of_it_and_refuses_the_rest_by_name(tmp_path: Path) -> None:
    score = await scored(tmp_path, lambda: PortableEngine(processes=4))
    assert score.silent == {}
    assert score.count("c") >= 45
    refused = {program.id for program in all_programs() if program.portable}
    assert {name for name in refused if name in score.at_once} == set()
    others = {name: text for name, text in score.failed.items() if name not in refused}
    assert others.keys() <= NOT_PYTHON | {"m58", "m59", "m60"}, others
    for name in refused:
        assert name not in score.failed or _names_the_way_out(score.failed[name]), score.failed[name]


def _names_the_way_out(error: str) -> bool:
    refused = "the portable engine cannot run this" in error and not error.endswith("nothing was run")
    return refused or error.endswith(HINT)


def test_the_programs_are_sixty_correct_ones_and_sixty_mistakes_each_with_its_answer() -> None:
    programs = all_programs()
    assert sum(program.is_mistake for program in programs) == 60
    assert len({program.id for program in programs}) == len(programs) == 120
    assert all(program.gives is not None or program.prints is not None for program in programs)
