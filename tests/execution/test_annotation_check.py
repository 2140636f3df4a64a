"""A pack's arguments are held to its annotations before it is called; what may be right passes."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from ot.errors import InvalidArguments
from ot.execution.annotation_check import require_fit
from ot.registry.tool import Tool
from ot.registry.tool_loader import PackSource
from ot.workspace import Workspace
from run_app import error_of, paths_in, value_of

FORECAST = '''
def forecast(*, city: str, days: int = 1) -> str:
    """Return the forecast."""
    return f"{city}: {len(city)} x {days}"
'''


def tool(source: str) -> Tool:
    return PackSource("p", "p_tools.py", source.encode()).tools(target="p")[0]


def taking(parameter: str) -> Tool:
    return tool(f"def f(*, {parameter}): ...")


def refusal(tool: Tool, **arguments: Any) -> str:
    with pytest.raises(InvalidArguments) as caught:
        require_fit(tool, arguments)
    return caught.value.message


@pytest.mark.parametrize(
    ("parameter", "value", "words"),
    [
        ("x: str", 5, "must be str, not int 5"),
        ("x: str", ["a"], "must be str, not list"),
        ("x: str", b"ab", "must be str, not bytes b'ab'"),
        ("x: str", datetime.date(2026, 1, 2), "must be str, not date date('2026-01-02')"),
        ("x: int", "5", "must be int, not str '5'"),
        ("x: int", 5.5, "must be int, not float 5.5"),
        ("x: int = 10", None, "must be int, not None: leave it out"),
        ("x: float", "1.5", "must be float, not str '1.5'"),
        ("x: bool", "yes", "must be bool, not str 'yes'"),
        ("x: list[str]", "Berlin", "must be list[str], not str 'Berlin'"),
        ("x: list[str]", {"a": 1}, "must be list[str], not dict"),
        ("x: dict[str, int]", [1], "must be dict[str, int], not list"),
        ("x: str | None", 5, "must be str | None, not int 5"),
        ("x: Optional[str]", 5, "must be Optional[str], not int 5"),
        ("x: typing.Union[str, int]", [], "must be typing.Union[str, int], not list"),
        ("x: 'str'", 5, "must be 'str', not int 5"),
        ("x: str = None", 5, "must be str, not int 5"),
        ("x: Literal['celsius', 'kelvin']", "celcius", "must be one of 'celsius', 'kelvin', not 'celcius', did you"),
        ("x: Literal['a', 'b']", {1}, "must be one of 'a', 'b', not {1}"),
        ("x: Literal['a'] | int", "c", "must be Literal['a'] | int, not str 'c'"),
    ],
)
def test_what_certainly_does_not_fit_is_refused_with_what_was_expected_and_given(
    parameter: str, value: Any, words: str
) -> None:
    assert refusal(taking(parameter), x=value).startswith(f"p.f() argument 'x' {words}")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("x", 5),
        ("x: Any", 5),
        ("x: object", 5),
        ("x: City", 5),
        ("x: np.str", 5),
        ("x: Sequence[str]", "abc"),
        ("x: Iterable[str]", {"a": 1}),
        ("x: str | City", 5),
        ("x: Annotated[int, BeforeValidator(int)]", "5"),
        ("x: str", PurePosixPath("a")),
        ("x: int", True),
        ("x: int", 3.0),
        ("x: float", 3),
        ("x: float", Decimal("1.5")),
        ("x: bool", 1),
        ("x: list[str]", ("a", "b")),
        ("x: list[int]", {1, 2}),
        ("x: list[int]", ["not looked at"]),
        ("x: tuple[int, ...]", [1]),
        ("x: set[int]", [1]),
        ("x: str | None", None),
        ("x: str = None", None),
        ("x: int = ''", "any text"),
        ("x: str = computed()", 5),
        ("x: Literal['a', 1]", 1),
        ("**x: str", 5),
    ],
)
def test_values_that_may_fit_their_annotation_pass(parameter: str, value: Any) -> None:
    source = parameter if parameter.startswith("**") else f"*, {parameter}"
    require_fit(tool(f"def f({source}): ..."), {"x": value})


def test_a_decorated_function_may_convert_its_arguments() -> None:
    require_fit(tool("@validate_call\ndef f(*, x: int): ..."), {"x": "5"})


def test_annotations_are_read_once_and_anew_when_the_pack_has_changed() -> None:
    require_fit(taking("x: int"), {"x": 5})
    with pytest.raises(InvalidArguments, match="must be str"):
        require_fit(taking("x: str"), {"x": 5})


@pytest.mark.anyio
async def test_a_pack_in_a_worker_is_not_called_with_an_argument_of_another_type(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, {})
    file = paths.global_dir / "tools" / "weather" / "weather_tools.py"
    file.parent.mkdir(parents=True)
    file.write_text(FORECAST)
    app = Workspace.alone(paths)
    try:
        error = error_of(await app.run("weather.forecast(city=5)"))
        assert "TypeError: weather.forecast() argument 'city' must be str, not int 5. Expected: weather." in error
        assert app.host.workers.states() == {}  # nothing was started for it
        assert value_of(await app.run("weather.forecast(city='Rome', days=2.0)")) == "Rome: 4 x 2.0"
        error = error_of(await app.run("file.read(path=['a', 'b'])"))
        assert "file.read() argument 'path' must be str, not list" in error
    finally:
        await app.aclose()
