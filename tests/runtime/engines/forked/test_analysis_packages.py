"""Packages that the user lets programs import: installed once by uv, imported ahead, as contained as all else."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from exact_attacks import NoPacks

from ot.config.models import Engines, Limits
from ot.errors import EngineUnavailable
from ot.execution.deadline import Deadline
from ot.runtime.engines.choice import EngineChoice
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.forked.jail_command import AnalysisPackages, Packages, imports_packages
from ot.runtime.program import parse_program
from ot.workers.pack_environment import PackEnvironments
from run_app import error_of, running_app, value_of

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(bool(ExactEngine.missing_here()), reason=ExactEngine.missing_here() or "it is here"),
]

SIX = "import six\n[six.PY3, six.text_type('x')]"


class Never(AnalysisPackages):
    """Packages whose installation does not end."""

    def __init__(self) -> None:
        super().__init__(["six"], PackEnvironments(Path("/nowhere"), {}))

    async def install(self) -> Packages:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


@pytest.fixture
async def environments(tmp_path: Path) -> AsyncGenerator[PackEnvironments]:
    made = PackEnvironments(tmp_path / "state", os.environ)
    yield made
    await made.aclose()


async def result(engine: Any, source: str) -> Any:
    return (await engine.run(parse_program(source), NoPacks(), Limits(), Deadline.after(60))).value


@pytest.mark.parametrize("namespaces", [True, False])
async def test_a_program_imports_what_was_installed_and_cannot_change_it(
    environments: PackEnvironments, namespaces: bool
) -> None:
    packages = await AnalysisPackages(["six"], environments).install()
    engine = ExactEngine(namespaces=namespaces, packages=packages, ready=0)
    try:
        assert await result(engine, SIX) == [True, "x"]
        assert await result(engine, "import sys\n'six' in sys.modules") is True  # imported ahead
        write = "import six\ntry:\n    open(six.__file__, 'a')\nexcept OSError as error:\n    r = error.errno\nr"
        assert await result(engine, write) in (1, 13, 30)
        assert await result(engine, "import os\nlist(os.environ)") == []
    finally:
        await engine.aclose()


async def test_random_numbers_are_others_in_every_run(environments: PackEnvironments) -> None:
    packages = await AnalysisPackages(["numpy"], environments).install()
    # As pandas has it: the generator of the whole module is there before the first child.
    engine = ExactEngine(packages=replace(packages, imports=(*packages.imports, "numpy.random")))
    try:
        assert await result(engine, "import sys\n'numpy.random' in sys.modules") is True
        drawn = [await result(engine, "import numpy, random\n[numpy.random.rand(), random.random()]") for _ in range(3)]
        assert len({number for pair in drawn for number in pair}) == 6
    finally:
        await engine.aclose()


async def test_a_program_that_imports_none_does_not_wait_for_them() -> None:
    choice = EngineChoice(Engines(), packages=Never())
    try:
        assert await result(choice, "import statistics\nstatistics.mean([1, 3])") == 2
    finally:
        await choice.aclose()


async def test_what_cannot_be_installed_is_said_to_the_program_that_wants_it(environments: PackEnvironments) -> None:
    choice = EngineChoice(Engines(), packages=AnalysisPackages(["no-such-package-of-onetool"], environments))
    try:
        with pytest.raises(EngineUnavailable, match=r"engines\.exact\.packages cannot be installed"):
            await result(choice, "import no_such_package_of_onetool")
        assert await result(choice, "1 + 1") == 2
    finally:
        await choice.aclose()


async def test_the_setting_makes_packages_importable_in_runs(tmp_path: Path) -> None:
    config = {"engines": {"exact": {"packages": ["six"]}}}
    async with running_app(tmp_path, config=config, engine=None) as app:
        assert value_of(await app.run(SIX)) == '[true,"x"]'
        assert "six" in value_of(await app.run("str(ot.health()['engine'])"))
        assert "ModuleNotFoundError" in error_of(await app.run("import pydantic"))  # the server's own is not there


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("import json", False),
        ("from os import path", False),
        ("import numpy.linalg", True),
        ("def f():\n  import x", True),
    ],
)
def test_only_imports_beyond_the_standard_library_count(source: str, wanted: bool) -> None:
    assert imports_packages(parse_program(source)) is wanted
