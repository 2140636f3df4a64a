"""The exact engine against plain CPython, over the programs that models write: the values that cross are the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from differential import answer
from differential.compare import _cpython, read_cases

from no_files import NoFiles
from ot.config.models import Limits
from ot.errors import InvalidSyntax, ProgramFailed, ToolFailed, UnknownTool
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import NO_VALUE, Constant, Function, Missing
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.program import parse_program

pytestmark = pytest.mark.anyio


class PackReach(NoFiles):
    """A reach of one pack, whose calls are written down as on the other side."""

    def __init__(self) -> None:
        self.pack = answer.Pack()

    def has_pack(self, name: str) -> bool:
        return name == "pack"

    def member(self, pack: str, name: str) -> Function | Constant | Missing:
        return Function() if hasattr(self.pack, name) else Missing()

    async def call(
        self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, line: int | None = None
    ) -> Any:
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
