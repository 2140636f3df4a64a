"""Each engine against plain CPython, over the programs that models write."""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from differential import answer
from differential.compare import (
    DIFFERENT,
    DOCUMENTED,
    PYTHON,
    SAME,
    Case,
    Finding,
    _cpython,
    compare,
    read_agreeing,
    read_cases,
    read_documented,
    read_expected,
)
from pydantic_monty import __version__

from no_files import NoFiles
from ot.config.models import Limits
from ot.errors import InvalidSyntax, ProgramFailed, ToolFailed, UnknownTool
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import NO_VALUE, Constant, Function, Missing
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.program import parse_program

pytestmark = pytest.mark.anyio

DIFFERENCES = runpy.run_path(str(Path(__file__).parents[3] / "docs" / "make_portable_engine.py"))["DIFFERENCES"]
AT_LEAST = 650
RECORD = "look at each, then record it: PYTHONPATH=src:tests/runtime/engines python -m differential.compare"


@pytest.fixture(scope="module")
def findings() -> list[Finding]:
    return compare(read_cases())


def shown(findings: list[Finding]) -> str:
    return "\n\n".join(f"{f.case.id}\n{f.case.source}\nCPython: {f.cpython}\nMonty:   {f.monty}" for f in findings)


def test_there_are_enough_cases_and_no_two_are_the_same() -> None:
    cases = read_cases()
    assert len(cases) >= AT_LEAST
    assert len(cases) == len({case.id for case in cases})


def test_nothing_answers_differently_from_cpython_in_silence(findings: list[Finding]) -> None:
    silent = [found for found in findings if found.outcome == DIFFERENT]
    assert not silent, f"refuse these, or document them in docs/make_portable_engine.py:\n\n{shown(silent)}"


def test_nothing_that_agrees_with_cpython_is_refused_without_a_reason(findings: list[Finding]) -> None:
    agreeing = {found.case.id: found for found in findings if found.gaps and found.agrees}
    reasons = read_agreeing()
    surprising = [found for id_, found in agreeing.items() if id_ not in reasons]
    assert not surprising, f"refused although both agree:\n\n{shown(surprising)}"
    assert not reasons.keys() - agreeing.keys(), "these are no longer refused, or no longer agree: take them out"
    assert all(reasons.values())


def test_the_record_was_made_with_the_installed_engine() -> None:
    assert read_expected()["monty"] == __version__, f"a new release of the engine; {RECORD}"


def test_nothing_has_moved_since_it_was_recorded(findings: list[Finding]) -> None:
    recorded = read_expected()
    if recorded["python"] != PYTHON:
        pytest.skip(f"recorded with CPython {recorded['python']}; the other tests hold for every version")
    moved = [
        f"{found.case.id}: {before} -> {found.outcome}\n{found.case.source}"
        for found in findings
        if (before := recorded["outcomes"].get(found.case.id, SAME)) != found.outcome
    ]
    assert not moved, f"{len(moved)} cases moved; {RECORD}\n\n" + "\n\n".join(moved)
    assert recorded["cases"] == len(findings), RECORD
    assert not recorded["outcomes"].keys() - {found.case.id for found in findings}, RECORD


def test_every_documented_difference_has_cases_that_show_it() -> None:
    documented = read_documented()
    assert documented.keys() == DIFFERENCES.keys()
    assert all(documented.values())


def test_the_documented_cases_do_differ(findings: list[Finding]) -> None:
    if read_expected()["python"] != PYTHON:
        pytest.skip("some of them differ only from the CPython that they were recorded with")
    agreed = [found for found in findings if found.case.topic == DOCUMENTED and found.outcome != DOCUMENTED]
    assert not agreed, f"these are no differences any more:\n\n{shown(agreed)}"


def test_calling_a_tool_more_often_than_cpython_counts_as_a_difference() -> None:
    case = Case("packs", "any([pack.double(x) > 3 for x in [1, 2, 3, 4]])")
    lazy = Case("packs", "any(pack.double(x) > 3 for x in [1, 2, 3, 4])")
    eager_found, lazy_found = compare([case, lazy])
    assert eager_found.agrees
    assert not lazy_found.agrees
    assert lazy_found.cpython["value"] == lazy_found.monty["value"]


class PackReach(NoFiles):
    """A reach of one pack, whose calls are written down as on the other side."""

    packs = frozenset({"pack"})

    def __init__(self) -> None:
        self.pack = answer.Pack()

    def member(self, pack: str, name: str) -> Function | Constant | Missing:
        return Function() if hasattr(self.pack, name) else Missing()

    async def call(self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], **places: object) -> Any:
        function = getattr(self.pack, name, None)
        if function is None:
            raise UnknownTool(pack, name, ("echo", "double", "fail"))
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever the pack raises
            raise ToolFailed(f"pack.{name}", type(error).__name__, str(error)) from None


async def answered(engine: ExactEngine, source: str) -> dict[str, Any]:
    """Return what the engine made of *source*, in the form of the other side."""
    reach = PackReach()
    try:
        outcome = await engine.run(parse_program(source), reach, Limits(), Deadline.after(20))
        value = None if outcome.value is NO_VALUE else outcome.value
        result = {"value": answer.encode(value), "printed": outcome.printed}
    except ProgramFailed as error:
        result = {"error": error.kind, "printed": error.printed}
    except InvalidSyntax as error:
        result = {"error": error.message.partition(":")[0], "printed": ""}
    return json.loads(json.dumps({**result, "calls": reach.pack.calls}))


def is_plain(encoded: Any) -> bool:
    """Return whether a value has a plain form; others cross as a text about them."""
    kinds = {"bool", "int", "str", "bytes", "NoneType", "float", "list", "dict", "tuple", "set", "frozenset"}
    kinds |= {"datetime", "date", "time", "timedelta", "Decimal"}
    kind, value = encoded
    parts = [part for pair in value for part in pair] if kind == "dict" else value if isinstance(value, list) else []
    return kind in kinds and all(is_plain(part) for part in parts)


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.soak)])
async def test_every_value_that_can_cross_is_what_cpython_says(every: int) -> None:
    cases = [case for case in read_cases()[::every] if "sys.executable" not in case.source]
    expected = _cpython([case.source for case in cases])
    engine = ExactEngine()
    try:
        found = [await answered(engine, case.source) for case in cases]
    finally:
        await engine.aclose()
    different = [
        f"{case.source}\nCPython: {wanted}\nexact:   {got}"
        for case, wanted, got in zip(cases, expected, found, strict=True)
        if ("error" in wanted or is_plain(wanted["value"])) and wanted != got
    ]
    assert not different, f"{len(different)} of {len(cases)}\n\n" + "\n\n".join(different)
