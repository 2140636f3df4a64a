"""Programs such as models write: the exact engine answers as CPython, the portable one too or refuses by name."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import program_packs
import pytest
from program_packs import Shop, Web, encode

from no_files import NoFiles
from ot.config.models import Limits
from ot.errors import InvalidSyntax, NotSupported, ProgramFailed, ToolFailed
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import NO_VALUE, Constant, Engine, Function, Missing
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.program import parse_program

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "explanation" / "engines.md"
AT_LEAST = 150
REFUSED = "refused"
OWN_REFUSAL = "the portable engine cannot run this: "
"""What the portable engine's interpreter does not support, it refuses itself."""


class Packs(NoFiles):
    """A reach of the two packs."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {"shop": Shop(), "web": Web()}
        self.packs = self.objects.keys()

    def member(self, pack: str, name: str) -> Function | Constant | Missing:
        return Function() if hasattr(self.objects[pack], name) else Missing()

    async def call(self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], **places: object) -> Any:
        try:
            found = getattr(self.objects[pack], name)(*args, **kwargs)
            return await found if inspect.isawaitable(found) else found
        except Exception as error:  # noqa: BLE001 - whatever the pack raises
            text = str(error.args[0]) if error.args else ""
            raise ToolFailed(f"{pack}.{name}", type(error).__name__, text) from None


def read_programs() -> dict[str, str]:
    """Return every program by its name."""
    blocks = [
        block
        for path in sorted(HERE.glob("*.txt"))
        for block in re.split(r"^=== ", path.read_text("utf-8"), flags=re.M)
    ]
    named = [block.partition("\n") for block in blocks if block.strip()]
    assert len(named) == len({name for name, _, _ in named}), "two programs have one name"
    return {name: source.strip() + "\n" for name, _, source in named}


PROGRAMS = read_programs()


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-I", program_packs.__file__],
        input=json.dumps([*PROGRAMS.values()]), env={"TZ": "UTC0"}, capture_output=True, text=True, timeout=60,
        check=True,
    )  # fmt: skip
    return dict(zip(PROGRAMS, json.loads(done.stdout), strict=True))


async def answered(engine: Engine, source: str) -> Any:
    """Return what *engine* makes of a program, in the form of the other side, or that it refused."""
    packs = Packs()
    try:
        program = parse_program(source)
        engine.refuse(program, packs)
        outcome = await engine.run(program, packs, Limits(), Deadline.after(20))
    except NotSupported as error:
        assert all(gap.what and gap.line for gap in error.gaps)
        return REFUSED
    except ProgramFailed as error:
        if error.message.startswith(OWN_REFUSAL):
            assert error.kind == "NotImplementedError" and error.line and error.hint
            return REFUSED
        return {"error": [error.kind, error.message], "printed": error.printed}
    except InvalidSyntax as error:
        return {"error": ["SyntaxError", str(error)]}
    value = None if outcome.value is NO_VALUE else outcome.value
    return {"value": encode(value), "printed": outcome.printed}


async def answers(engine: ExactEngine | PortableEngine) -> dict[str, Any]:
    try:
        return json.loads(json.dumps({name: await answered(engine, source) for name, source in PROGRAMS.items()}))
    finally:
        await engine.aclose()


def differences(found: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    different = [name for name in PROGRAMS if found[name] not in (expected[name], REFUSED)]
    return "\n\n".join(f"{name}\nCPython: {expected[name]}\nengine:  {found[name]}" for name in different)


def test_there_are_enough_programs_and_nearly_all_of_them_have_a_value(expected: dict[str, Any]) -> None:
    assert len(PROGRAMS) >= AT_LEAST
    failing = [name for name, answer in expected.items() if "error" in answer]
    assert len(failing) <= 5, f"programs that fail in CPython itself: {failing}"


async def test_the_exact_engine_answers_every_program_as_cpython_does(expected: dict[str, Any]) -> None:
    found = await answers(ExactEngine())
    assert REFUSED not in found.values()
    assert not differences(found, expected), differences(found, expected)


async def test_the_portable_engine_answers_as_cpython_does_or_refuses_and_the_share_is_documented(
    expected: dict[str, Any],
) -> None:
    found = await answers(PortableEngine())
    assert not differences(found, expected), differences(found, expected)
    runs = sum(answer != REFUSED for answer in found.values())
    sys.stdout.write(f"the portable engine runs {runs} of {len(found)} programs, the exact engine all\n")
    assert f"runs {runs} of {len(found)} programs" in PAGE.read_text("utf-8"), (
        f"{PAGE.name}: it runs {runs} of {len(found)}"
    )
