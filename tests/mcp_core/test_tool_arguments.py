"""Argument models are strict, describe themselves, and collect the tools that use them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import anyio
import anyio.to_thread
import pytest
from pydantic import ValidationError

from mcp_core import Consent, ToolArguments, arguments_model, program_function
from pace import PATIENCE
from typed_tools import Arguments, Nothing, Plain, create, ping, repeat, repeat_later, untyped

pytestmark = pytest.mark.anyio


@pytest.mark.scenario("003-05")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"text": "x", "extra": 1}, "Extra inputs are not permitted"),
        ({}, "Field required"),
        ({"text": 1}, "valid string"),
        ({"text": "x", "times": "2"}, "valid integer"),
        ({"text": "x", "times": True}, "valid integer"),
        ({"text": "a\0b"}, "NUL"),
        ({"text": "\ud800"}, "an unpaired surrogate"),
    ],
)
def test_a_model_takes_exactly_what_it_names(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Plain(**given)


@pytest.mark.scenario("003-05")
def test_an_assignment_is_checked_too() -> None:
    arguments = Plain(text="x")
    arguments.times = 3
    with pytest.raises(ValidationError, match="valid integer"):
        arguments.times = "3"  # pyright: ignore[reportAttributeAccessIssue] - the subject
    with pytest.raises(ValidationError, match="extra"):
        arguments.extra = 1  # pyright: ignore[reportAttributeAccessIssue] - the subject


def test_text_is_checked_at_any_depth_and_depth_is_bounded() -> None:
    with pytest.raises(ValidationError, match="NUL"):
        Arguments(lit="CREATE_DOCUMENT", more={"a": [{"b": "\0"}]})
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"d": deep}
    with pytest.raises(ValidationError, match="nested more than"):
        Arguments(lit="CREATE_DOCUMENT", more=deep)


@pytest.mark.scenario("003-06")
def test_the_markdown_has_name_type_need_and_description_of_every_argument() -> None:
    assert Arguments.to_schema_markdown().splitlines() == [
        "## Arguments",
        "",
        "- `lit` (`\"CREATE_DOCUMENT\"`, required): Pass 'CREATE_DOCUMENT', and only when the user has asked for this",
        "- `n` (`int`, optional, default `1`): How many",
        "- `ratio` (`float`, optional, default `0.5`)",
        "- `s` (`str`, optional, default `''`)",
        '- `kind` (`"a" | "b" | None`, optional, default `None`)',
        "- `tags` (`list[str]`, optional): Words to find it by",
        "- `more` (`dict[str, Any]`, optional)",
    ]
    assert Nothing.to_schema_markdown() == "## Arguments\n\nNone."


@pytest.mark.scenario("003-07")
def test_a_description_is_the_docstring_and_the_arguments() -> None:
    assert ToolArguments.build_tool_description(repeat) == f"Repeat a text.\n\n{Plain.to_schema_markdown()}"
    assert ToolArguments.build_tool_description(repeat_later).startswith("Repeat a text in its own time.\n\n## Arg")
    assert ToolArguments.build_tool_description(untyped) == "Have no model."


@pytest.mark.scenario("003-24")
@pytest.mark.parametrize("word", ["create_document", "CREATE_DOCUMENT ", "", "yes", True, None, "REMOVE_DOCUMENT"])
def test_consent_is_one_exact_word(word: object) -> None:
    assert Arguments.model_validate({"lit": "CREATE_DOCUMENT"}).lit == "CREATE_DOCUMENT"
    with pytest.raises(ValidationError, match="Input should be 'CREATE_DOCUMENT'"):
        Arguments.model_validate({"lit": word})
    with pytest.raises(ValidationError, match="Field required"):
        Arguments.model_validate({})


@pytest.mark.parametrize("kind", [str, Literal["A", "B"], Literal[1]], ids=str)
def test_a_consent_that_could_be_given_by_accident_is_no_model(kind: Any) -> None:
    with pytest.raises(TypeError, match="must be a Literal of one text without a default"):
        type("Loose", (ToolArguments,), {"__annotations__": {"yes": Annotated[kind, Consent()]}})
    with pytest.raises(TypeError, match="without a default"):
        type("Given", (ToolArguments,), {"__annotations__": {"yes": Annotated[Literal["A"], Consent()]}, "yes": "A"})


@pytest.mark.scenario("003-25")
def test_a_tool_that_needs_consent_says_so_explains_it_and_warns() -> None:
    text = ToolArguments.build_tool_description(create)
    assert text.startswith("Create something.\n\nIt stays.\n\n**REQUIRES EXPLICIT USER INSTRUCTION.**")
    assert 'pass `lit="CREATE_DOCUMENT"`' in text
    assert "Never call it on your own initiative" in text
    assert "REQUIRES" not in ToolArguments.build_tool_description(repeat)
    assert Arguments.model_json_schema()["properties"]["lit"]["description"].startswith("Pass 'CREATE_DOCUMENT'")
    assert (Arguments.consent_word(), Plain.consent_word()) == ("CREATE_DOCUMENT", None)


@pytest.mark.scenario("003-08")
async def test_declaring_collects_a_function_and_leaves_it_as_it_is() -> None:
    attributes = dict(vars(repeat))
    assert ToolArguments.declare(repeat) is repeat
    assert (vars(repeat), repeat(Plain(text="x")).value) == (attributes, "xx")
    assert await ToolArguments.get_declared_tools() == {"repeat": repeat}


@pytest.mark.scenario("003-09", "003-10")
async def test_collecting_gives_all_tools_once() -> None:
    for tool in (repeat, create, repeat_later):
        Plain.declare(tool)
    assert await ToolArguments.get_declared_tools() == {
        "repeat": repeat,
        "create": create,
        "repeat_later": repeat_later,
    }
    assert await ToolArguments.get_declared_tools() == {}


class WatchedLock:
    """A lock that says when somebody has to wait for it."""

    def __init__(self, moved: threading.Event) -> None:
        self._lock = threading.Lock()
        self._moved = moved

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._moved.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.mark.scenario("003-11")
async def test_what_is_declared_while_tools_are_collected_waits_and_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved = threading.Event()
    threads: list[threading.Thread] = []

    def late() -> None:
        ToolArguments.declare(named("late"))
        moved.set()

    class Listed(dict[tuple[str, str], Any]):
        """A collection that somebody adds to while it is listed, which fails, unless that one has to wait."""

        def __iter__(self) -> Iterator[tuple[str, str]]:
            for key in super().__iter__():
                if not threads:
                    threads.append(threading.Thread(target=late))
                    threads[0].start()
                    assert moved.wait(10)
                yield key

    monkeypatch.setattr(ToolArguments, "_lock", WatchedLock(moved))
    monkeypatch.setattr(ToolArguments, "_declared", Listed({(__name__, "early"): repeat}))
    first = await ToolArguments.get_declared_tools()
    threads[0].join(10)
    assert (list(first), list(await ToolArguments.get_declared_tools())) == (["early"], ["late"])


@pytest.mark.scenario("003-11", "003-09")
async def test_tools_declared_by_many_threads_are_collected_once_each_by_many_loops() -> None:
    names = [f"tool_{number}" for number in range(400)]
    found: list[str] = []
    start = threading.Barrier(8)

    def declare(share: list[str]) -> None:
        start.wait(PATIENCE)
        for name in share:
            ToolArguments.declare(named(name))

    def collect() -> None:
        start.wait(PATIENCE)
        for _ in range(200):
            found.extend(anyio.run(ToolArguments.get_declared_tools))

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(anyio.to_thread.run_sync, declare, names[number::6])
        for _ in range(2):
            tasks.start_soon(anyio.to_thread.run_sync, collect)
    found.extend(await ToolArguments.get_declared_tools())
    assert sorted(found) == sorted(names)


@pytest.mark.scenario("003-11")
async def test_of_many_coroutines_one_gets_the_tools() -> None:
    ToolArguments.declare(repeat)
    found: list[dict[str, Any]] = []

    async def collect() -> None:
        found.append(await ToolArguments.get_declared_tools())

    async with anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(collect)
    assert sorted(map(len, found)) == [0] * 49 + [1]


def named(name: str, module: str = __name__) -> Any:
    def tool(args: Nothing) -> None: ...

    tool.__name__, tool.__module__ = name, module
    return tool


async def test_a_tool_declared_twice_takes_its_own_place_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = named("same"), named("same")
    ToolArguments.declare(first)
    with caplog.at_level(logging.WARNING):
        ToolArguments.declare(second)
    assert "the tool 'same' of" in caplog.text
    assert await ToolArguments.get_declared_tools() == {"same": second}


async def test_modules_may_declare_one_name_and_a_server_collects_those_of_its_own_package() -> None:
    mine, theirs, apart = named("same", "a.mine"), named("same", "b.theirs"), named("same", "ab")
    for tool in (mine, theirs, apart):
        ToolArguments.declare(tool)
    with pytest.raises(ValueError, match=r"both a\.mine and b\.theirs declare a tool 'same': collect one package"):
        await ToolArguments.get_declared_tools()
    assert await ToolArguments.get_declared_tools("a") == {"same": mine}
    assert await ToolArguments.get_declared_tools("a") == {}
    assert await ToolArguments.get_declared_tools("b.theirs") == {"same": theirs}
    assert await ToolArguments.get_declared_tools() == {"same": apart}


def test_the_model_is_the_annotation_of_the_only_parameter() -> None:
    assert (arguments_model(create), arguments_model(untyped)) == (Arguments, None)
    assert arguments_model(program_function(create)) is Arguments


async def test_as_an_ordinary_function_a_tool_gives_its_value_or_raises() -> None:
    assert program_function(repeat)(text="x", times=3) == "xxx"
    assert await program_function(repeat_later)(text="x") == "xx"
    assert program_function(ping)() == "pong"
    with pytest.raises(ValueError, match="times: Input should be a valid integer"):
        program_function(repeat)(text="x", times="3")
    with pytest.raises(Exception, match="limit: too often"):
        await program_function(repeat_later)(text="x", times=9)
    with pytest.raises(TypeError, match="untyped must have one parameter"):
        program_function(untyped)
