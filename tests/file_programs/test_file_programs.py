"""Programs that use files by Python's own functions: the workspace answers as CPython does on the same tree."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import file_tree
import pytest
from file_tree import make_tree, snapshot

from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.workspace import Workspace
from run_app import running_app

pytestmark = pytest.mark.anyio

PORTABLE_AT_LEAST = 45
REFUSALS = ("cannot run this", "not supported", "lacks", "the portable engine")


def read_programs() -> dict[str, str]:
    text = Path(__file__).with_name("programs.txt").read_text("utf-8")
    named = [block.partition("\n") for block in re.split(r"^=== ", text, flags=re.M) if block.strip()]
    return {name: source.strip() + "\n" for name, _, source in named}


PROGRAMS = read_programs()


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-I", "-X", "utf8", file_tree.__file__],
        input=json.dumps([*PROGRAMS.values()]), env={"TZ": "UTC0"}, capture_output=True, text=True, timeout=60,
        check=True,
    )  # fmt: skip
    return dict(zip(PROGRAMS, json.loads(done.stdout), strict=True))


@pytest.fixture(scope="module", params=["exact", "portable"])
async def workspace(request: Any, tmp_path_factory: Any) -> AsyncIterator[tuple[str, Workspace, Path]]:
    directory = tmp_path_factory.mktemp("files")
    config = {"policy": {"allow": ["file.*"]}}
    engine = ExactEngine() if request.param == "exact" else PortableEngine()
    async with running_app(directory, config=config, engine=engine) as app:
        yield request.param, app, directory / "work"


async def answered(app: Workspace, top: Path, source: str) -> dict[str, Any]:
    make_tree(top)
    reply = await app.run(source)
    error = reply.texts[-1].partition(":")[0] if reply.is_error else ""
    texts = [file_tree.NOTHING] if reply.is_error else list(reply.texts)
    return {"texts": texts, "error": error, "tree": snapshot(top), "said": reply.texts[-1]}


async def test_files_by_pythons_own_functions_are_those_that_cpython_sees(
    workspace: tuple[str, Workspace, Path], expected: dict[str, Any]
) -> None:
    engine, app, top = workspace
    assert len(PROGRAMS) >= 60
    assert not [name for name, answer in expected.items() if answer["error"]], "a program of this list is wrong"
    wrong, refused = {}, []
    for name, source in PROGRAMS.items():
        found = await answered(app, top, source)
        said = found.pop("said")
        if engine == "portable" and found["error"] and any(word in said for word in REFUSALS):
            refused.append(name)
        elif found != expected[name]:
            wrong[name] = {key: (found[key], expected[name][key]) for key in found if found[key] != expected[name][key]}
            wrong[name]["said"] = said
    assert not wrong, json.dumps(wrong, indent=1)[:6000]
    if engine == "exact":
        assert not refused
    else:
        assert len(PROGRAMS) - len(refused) >= PORTABLE_AT_LEAST, refused
