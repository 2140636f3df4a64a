"""Arguments of proxied tools are checked against their schema before anything is sent, in the words of a call."""

from __future__ import annotations

import datetime
import socket
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ot.errors import InvalidArguments
from ot.execution.schema_check import SchemaCheck, build_validators
from ot.proxied.proxied_pack import tool_of_definition
from ot.registry.proxy_target import ProxyTarget, ServerIdentity
from ot.registry.tool import Tool
from pace import effort
from registry.json_schemas import JSON, NAMES, OBJECTS

pytestmark = pytest.mark.anyio

ISSUE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 3},
        "state": {"enum": ["open", "closed"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "labels": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
                "additionalProperties": False,
            },
        },
        "max-age": {"type": "number", "exclusiveMinimum": 0},
        "who": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "code": {"type": "string", "pattern": "^[A-Z]+$"},
        "kind": {"const": "issue"},
    },
    "required": ["title"],
}


def tool_of(schema: dict[str, Any]) -> Tool:
    return tool_of_definition(ServerIdentity("github", "e1"), "gh", "create", {"name": "create", "inputSchema": schema})


async def checked(schema: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    return await SchemaCheck().check(tool_of(schema), arguments)


async def refusal(schema: dict[str, Any], **arguments: Any) -> str:
    with pytest.raises(InvalidArguments) as caught:
        await checked(schema, **arguments)
    text, _, signature = str(caught.value).partition(". Expected: ")
    assert signature.startswith("gh.create(")
    return text.removeprefix("gh.create() ")


async def test_arguments_that_fit_are_passed_on_as_json_has_them() -> None:
    given = {"title": "abc", "labels": ({"name": "x"},), "who": PurePosixPath("a/b"), "max_age": 1}
    assert await checked(ISSUE, **given) == {"title": "abc", "labels": [{"name": "x"}], "who": "a/b", "max_age": 1}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"title": 3}, "argument 'title' must be str, not int 3"),
        ({"title": None}, "argument 'title' must be str, not None: leave it out"),
        ({"title": ["x"]}, "argument 'title' must be str, not list"),
        ({"title": "x"}, "argument 'title' must have at least 3 characters, has 1"),
        ({"state": "opne"}, "argument 'state' must be one of 'open', 'closed', not 'opne', did you mean 'open'?"),
        ({"count": 10}, "argument 'count' must be at most 9, not 10"),
        ({"count": True}, "argument 'count' must be int, not bool True"),
        ({"max_age": 0}, "argument 'max_age' must be more than 0, not 0"),
        ({"labels": [{"name": "a"}, {}]}, "argument 'labels[1]' must have 'name'"),
        ({"labels": [{"name": 1}]}, "argument 'labels[0]['name']' must be str, not int 1"),
        ({"labels": [{"name": "a", "x": 1}]}, "argument 'labels[0]' must not have 'x'"),
        ({"labels": [{"name": "a"}] * 4}, "argument 'labels' must have at most 3 items, has 4"),
        ({"who": []}, "argument 'who' must be str or int, not []"),
        ({"code": "abc"}, "argument 'code' must match the pattern ^[A-Z]+$, and 'abc' does not"),
        ({"kind": "bug"}, "argument 'kind' must be 'issue', not 'bug'"),
        ({"count": 0, "kind": 1}, "argument 'count' must be at least 1, not 0; argument 'kind' must be 'issue', not 1"),
    ],
)
async def test_what_does_not_fit_is_told_by_argument(arguments: dict[str, Any], words: str) -> None:
    assert await refusal(ISSUE, **({"title": "abc"} | arguments)) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"x", "argument 'a' is bytes, which JSON lacks: give text, such as base64.b64encode(data).decode()"),
        ({1}, "argument 'a' is set, which JSON lacks: give a list, such as sorted(values)"),
        (
            [{"when": datetime.date(2024, 1, 2)}],
            "argument 'a[0]['when']' is date, which JSON lacks: give text, such as value.isoformat()",
        ),
        (Decimal(1), "argument 'a' is Decimal, which JSON lacks: give float(value) or str(value)"),
        (float("nan"), "argument 'a' is nan, which JSON has no number for: give a finite number or None"),
        ({1: 2}, "argument 'a' has the key 1, and keys are text in JSON: give str(key)"),
    ],
)
async def test_what_json_does_not_have_is_refused_with_a_hint(value: Any, words: str) -> None:
    assert await refusal({"properties": {"a": {}}}, a=value) == words


async def test_a_tool_without_a_schema_is_not_touched() -> None:
    given = {"a": b"x"}
    assert await SchemaCheck().check(Tool("file", "write"), given) is given


async def test_a_validator_is_made_once_and_anew_for_a_new_schema() -> None:
    check, tool = SchemaCheck(), tool_of(ISSUE)
    await check.check(tool, {"title": "abc"})
    first = check._kept["gh.create"][1]
    await check.check(tool, {"title": "abc"})
    assert check._kept["gh.create"][1] is first
    await check.check(tool_of({"properties": {"title": {}}}), {"title": 1})
    assert check._kept["gh.create"][1] is not first


async def test_checking_arguments_against_a_schema_costs_microseconds() -> None:
    check, tool = SchemaCheck(), tool_of(ISSUE)
    await check.check(tool, {"title": "abc"})
    with effort() as spent:
        for _ in range(200):
            await check.check(tool, {"title": "abc", "labels": [{"name": "x"}]})
    assert spent.loops < 160


@pytest.mark.parametrize(
    "pattern",
    [
        *("^(a+)+$", "^(a|a|aa)+$", "^(?=(a+)+b)(a|aa)+$", r"^(\w+\s?)*$", "((a{99}){99}){99}", "(", "(?<!a+)b"),
        *("(?=a*b)c", r"[ab]*a[ab]{1200}c", r"(a*)\1b", r"\p{L}{400}x"),
    ],
)
@pytest.mark.parametrize("length", [4_000, 2_000_000])
async def test_a_hostile_pattern_does_not_hang(pattern: str, length: int) -> None:
    schema = {"properties": {"a": {"type": "string", "pattern": pattern}}}
    with effort() as spent:
        try:
            await checked(schema, a="ab" * (length // 2) + "!")
        except InvalidArguments as error:
            assert "must match the pattern" in str(error)
    assert spent.loops < 400


async def test_what_is_left_out_of_the_patterns_does_not_end_the_check_of_the_rest() -> None:
    schema = {
        "properties": {
            "a": {"type": "string", "pattern": "(?=x)y"},
            "b": {"type": "integer"},
            "c": {"patternProperties": {"^(?!x)": {"type": "integer"}}, "additionalProperties": False},
            "pattern": {"type": "string"},
        }
    }
    assert await checked(schema, a="anything", b=1, c={"k": 1}, pattern="(?=")
    assert await refusal(schema, a="anything", b="x") == "argument 'b' must be int, not str 'x'"


async def test_a_long_text_is_checked_for_all_but_patterns() -> None:
    schema = {"properties": {"a": {"pattern": "^[a-z]$"}, "b": {"type": "integer"}}}
    assert await checked(schema, a="A" * 100_000)
    assert await refusal(schema, a="A") == "argument 'a' must match the pattern ^[a-z]$, and 'A' does not"
    assert await refusal(schema, a="A" * 100_000, b="x") == "argument 'b' must be int, not str 'x'"


async def test_a_schema_that_unfolds_without_end_does_not_hang() -> None:
    parts: dict[str, Any] = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(60)}
    schema = {"$defs": parts, "properties": {"a": {"$ref": "#/$defs/a0"}}}
    with effort() as spent:
        assert await checked(schema, a={}) == {"a": {}}
    assert spent.loops < 400


async def test_a_schema_that_refers_to_itself_is_checked() -> None:
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}
    schema = {"$defs": {"node": node}, "properties": {"root": {"$ref": "#/$defs/node"}}}
    assert await checked(schema, root={"kids": [{"kids": []}]})
    assert await refusal(schema, root={"kids": [{"kids": 3}]}) == (
        "argument 'root['kids'][0]['kids']' must be list, not int 3"
    )


async def test_nothing_is_looked_up_elsewhere() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.2)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema"
        for schema in ({"$ref": address}, {"$schema": address, "properties": {}}, {"$id": address}):
            assert await checked(schema | {"additionalProperties": True}, a=1) == {"a": 1}
        with pytest.raises(TimeoutError):
            listener.accept()


async def test_the_older_form_of_a_schema_is_understood_too() -> None:
    pair = {"properties": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}}}
    assert await checked(pair, pair=["a", 1])
    assert await refusal(pair, pair=["a", "b"]) == "argument 'pair[1]' must be int, not str 'b'"


async def test_a_schema_that_is_none_is_left_to_the_server(caplog: pytest.LogCaptureFixture) -> None:
    assert await checked({"properties": {"a": {"type": "nonsense"}}}, a=1) == {"a": 1}
    assert "arguments of gh.create are checked by name alone: its schema cannot be used" in caplog.text


async def test_large_arguments_are_checked_in_a_thread_and_very_large_ones_by_the_server() -> None:
    numbers = {"properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    assert "argument 'a[9999]' must be int" in await refusal(numbers, a=[*range(9999), "x"])
    assert len((await checked(numbers, a=[*range(300_000), "x"]))["a"]) == 300_001


def _one_of_each(pairs: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return schemas of lists and objects, each with a value that fits it."""
    lists = pairs.map(lambda pair: ({"type": "array", "items": pair[0]}, [pair[1]] * 2))
    choices = pairs.map(lambda pair: ({"anyOf": [{"const": "never"}, pair[0]]}, pair[1]))
    return lists | choices | st.dictionaries(NAMES, pairs, max_size=3).map(_object)


def _object(parts: dict[str, tuple[Any, Any]]) -> tuple[Any, Any]:
    properties = {name: schema for name, (schema, _) in parts.items()}
    schema = {"type": "object", "properties": properties, "required": list(parts), "additionalProperties": False}
    return schema, {name: value for name, (_, value) in parts.items()}


FITTING = st.recursive(
    st.tuples(st.just({"type": "string"}), st.text(max_size=5))
    | st.tuples(st.just({"type": "integer", "minimum": -9}), st.integers(-9, 9))
    | st.tuples(st.just({"enum": ["a", None, 2]}), st.sampled_from(["a", None, 2])),
    _one_of_each,
    max_leaves=8,
)


@given(st.dictionaries(NAMES, FITTING, min_size=1, max_size=3).map(_object), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_what_fits_passes_and_what_does_not_is_refused(pair: tuple[Any, Any], random: Any) -> None:
    schema, arguments = pair
    tool = tool_of(schema)
    names: dict[str, str] = {original: name for name, original in ProxyTarget.of(tool.target).names.items()}
    call: dict[str, Any] = {str(names.get(name, name)): value for name, value in arguments.items()}
    validators = build_validators("x", schema)
    assert SchemaCheck()._check(tool, call, validators) == call
    with pytest.raises(InvalidArguments):
        SchemaCheck()._check(tool, call | {random.choice(list(call)): 3.25}, validators)


@given(OBJECTS, st.dictionaries(st.sampled_from(["id", "name", "x"]), JSON, max_size=3))
@settings(max_examples=60, deadline=None)
def test_any_schema_lets_a_call_pass_or_refuses_it_in_words(schema: dict[str, Any], arguments: Any) -> None:
    try:
        assert SchemaCheck()._check(tool_of(schema), arguments, build_validators("x", schema)) == arguments
    except InvalidArguments as error:
        assert str(error).startswith("gh.create() argument")
