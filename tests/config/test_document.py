"""What is made of the settings' models, their texts, and each configuration of the corpus of bad inputs."""

from __future__ import annotations

import json
import math
import runpy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from config.desk import Desk
from ot.config.document import MAX_BYTES, Node, parse
from ot.config.inventory import take_inventory
from ot.config.models import Config
from ot.config.new_directory import HEAD, json_schema
from ot.config.sections import whole_model
from ot.config.shape import all_keys
from ot.errors import ConfigError, TrustError
from pace import effort

FILE = Path("onetool.yaml")


def plain(text: str | bytes) -> object:
    return parse(text if isinstance(text, bytes) else text.encode(), FILE).plain()


def refusal(text: str | bytes) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        plain(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-7", -7),
        ("007", 7),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".inf", math.inf),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("no", "no"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        ("1_000", "1_000"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("[1, a, [b]]", [1, "a", ["b"]]),
        ("{a: {b: c}}", {"a": {"b": "c"}}),
    ],
)
def test_a_plain_value_is_what_it_looks_like(text: str, value: object) -> None:
    assert {"key": value} == plain(f"key: {text}\n")


def test_a_number_too_long_for_a_number_is_text() -> None:
    assert plain(f"key: {'9' * 5000}\n") == {"key": "9" * 5000}


def test_keys_of_a_yaml_document_are_always_text() -> None:
    assert plain("1: a\ntrue: b\nno: c\n") == {"1": "a", "true": "b", "no": "c"}


def test_a_byte_order_mark_is_skipped() -> None:
    assert plain(b"\xef\xbb\xbfa: 1\n") == {"a": 1}


def test_a_file_of_comments_alone_holds_nothing() -> None:
    assert plain("# nothing\n\n# yet\n") == {}


@pytest.mark.parametrize("text", ["", "\n", "  \n\n"])
def test_an_empty_file_is_refused_because_an_editor_may_be_saving_it(text: str) -> None:
    assert "empty" in str(refusal(text))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb:\n\tc: 2\n", 3, "tab"),
        ("a: 1\nb: 2\na: 3\n", 3, "'a' is given twice, first in line 1"),
        ("a: 1\nb: &x 2\n", 2, "anchors"),
        ("a: 1\nb: *x\n", 2, "anchors"),
        ("a: 1\nb: !!python/object/apply:os.system [id]\n", 2, "tag"),
        ("a: 1\nb: !!str 1\n", 2, "tag"),
        ("a: 1\n--- \nb: 2\n", 2, "second document"),
        ("a: 1\nb: \0\n", 2, r"'\x00'"),
        ("# x\n- a\n", 2, "keys and values"),
        ("just text\n", 1, "keys and values"),
        ("a: 1\n? [b]\n: 2\n", 2, "a key must be text"),
        ("a: 1\nb: [1\n", 3, "not valid YAML"),
        ("%TAG ! x\n---\na: 1\n", 1, "directives"),
        (b"a: 1\nb: \xff\n", 2, "UTF-8"),
        ("a:\n" + " - " + "[" * 40 + "]" * 40, 2, "nested"),
    ],
)
def test_what_no_configuration_needs_is_refused_with_its_line(text: str | bytes, line: int, words: str) -> None:
    error = refusal(text)
    assert (FILE, line) == (error.file, error.line)
    assert words in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 100_000,
        "{a: " * 200_000,
        "- " * 500_000,
        "? " * 500_000,
        "a: [" + "x," * 500_000,
        "".join(f"k{i}: v\n" for i in range(100_000))[:MAX_BYTES],
        "".join(f"%TAG !a{i}! x\n" for i in range(50_000)),
        '"' + "\\" * 1_000_000,
        "a: |\n" + " \n" * 500_000,
        "[[\n" * 300_000,
    ],
    ids=range(10),
)
def test_hostile_text_is_answered_within_a_second(text: str) -> None:
    with effort() as spent:
        try:
            plain(text)
        except ConfigError as error:
            assert error.line
    assert spent.loops < 400


def test_a_file_above_the_size_limit_is_refused() -> None:
    assert f"{MAX_BYTES:,}" in str(refusal(b"a: " + b"x" * MAX_BYTES))


FILLERS = (
    "# note\n",
    "\n",
    "k: v\n",
    "k: 'é😀\u2028\u0085'\n",
    "k: |\n  one\n\n  two\n",
    "k: [1,\n  2]\n",
    "k: {a: 1}\n",
)


@given(st.lists(st.sampled_from(FILLERS), max_size=8), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_every_key_knows_its_line_wherever_it_stands(blocks: list[str], end: str, nested: bool) -> None:
    before = "".join(block.replace("k:", f"k{number}:") for number, block in enumerate(blocks))
    text = before + ("outer:\n  wanted: 1\n" if nested else "wanted: 1\n") + "after: 2\n"
    node = parse(text.replace("\n", end).encode(), FILE)
    path = ("outer", "wanted") if nested else ("wanted",)
    assert before.count("\n") + 1 + nested == node.find(path).place.line


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc_", min_size=1), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text("abcxyz", min_size=1), PLAIN, max_size=4))
def test_json_reads_as_the_same_values(data: dict[str, object]) -> None:
    import json

    assert data == plain(json.dumps(data, ensure_ascii=False))


def test_find_gives_the_nearest_node_that_exists() -> None:
    root: Node = parse(b"a:\n  b: [1, 2]\n", FILE)
    assert root.find(("a", "b", 1)).value == 2
    assert root.find(("a", "b", 9)) == root.find(("a", "b"))
    assert root.find(("a", "zz", "y")) == root.find(("a",))


DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "reference" / "configuration.md"
SCRIPT: dict[str, Any] = runpy.run_path(str(DOCS / "make_settings_page.py"))
KEYS = list(all_keys())


def test_a_new_configuration_is_short_and_changes_nothing(desk: Desk) -> None:
    desk.write_user(HEAD)
    assert len(HEAD.splitlines()) == 2
    loaded = desk.load()
    assert (loaded.config, loaded.warnings) == (Config(), ())


@pytest.mark.parametrize("key", KEYS, ids=[key.name for key in KEYS])
def test_every_key_has_a_description_and_its_heading_on_the_page(key: object) -> None:
    from ot.config.shape import SettingKey

    assert isinstance(key, SettingKey)
    assert key.description
    assert SCRIPT["heading"](key) in PAGE.read_text(encoding="utf-8").splitlines()


def test_the_reference_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == SCRIPT["brought_up_to_date"](page), "run: python docs/make_settings_page.py"


def test_the_reference_says_what_a_project_may_do() -> None:
    text: str = SCRIPT["render_reference"]()
    part = text.partition("### `limits.calls`")[2].partition("###")[0]
    assert "- project: a project may only lower it" in part
    assert "- default: `1000`" in part
    assert "- allowed: 1 or more, at most 1,000,000" in part


GOOD = [
    {},
    {"version": 1, "aliases": {"a": "x.y"}},
    {"alias": {"a": "x.y"}},
    {"projects": {"a": "~/a", "b": {"path": "/b", "attrs": {"k": [1]}}}},
    {"limits": None, "policy": {"deny": ["a.*"]}},
    {"snippets": {"s": {"body": "x", "params": {"p": {"required": False}}}}},
    {"tools": {"p": {"anything": {"at": "all"}}}},
]
BAD = [
    {"versoin": 1},
    {"alias": {}, "aliases": {}},
    {"projects": {"a": 1}},
    {"limits": {"calls": 0}},
    {"limits": {"cals": 1}},
    {"security": {"sanitize": "never"}},
    {"policy": {"deny": "x"}},
]


@pytest.mark.parametrize("data", GOOD, ids=str)
def test_the_schema_accepts_what_is_loaded(data: dict[str, object], desk: Desk) -> None:
    jsonschema.validate(data, json_schema(), cls=jsonschema.Draft202012Validator)
    desk.write_user(json.dumps(data))
    desk.load()


@pytest.mark.parametrize("data", BAD, ids=str)
def test_the_schema_refuses_what_is_refused(data: dict[str, object], desk: Desk) -> None:
    from ot.errors import ConfigError

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, json_schema(), cls=jsonschema.Draft202012Validator)
    desk.write_user(json.dumps(data))
    with pytest.raises(ConfigError):
        desk.load()


def test_the_schema_is_a_schema_with_titles_and_descriptions_of_every_key() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == {*whole_model().model_fields, "alias"}
    assert all(rule["description"] for rule in schema["properties"].values())
    models = [known for known in schema["$defs"].values() if known.get("type") == "object"]
    assert len(models) == len(schema["$defs"]) - len(["TokenScope"])  # a name for some texts
    fields = [rule for model in models for rule in model["properties"].values()]
    assert all("description" in rule for rule in fields)


def test_frozen_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Config().limits.calls = 5  # pyright: ignore[reportAttributeAccessIssue] - that is the subject


CORPUS = Path(__file__).parents[1] / "corpus" / "bad_inputs.yaml"


def config_items() -> list[Any]:
    groups = yaml.load(CORPUS.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return next(group["items"] for group in groups["groups"] if group["group"] == "config")


def content(item: dict[str, str]) -> bytes:
    text: str | bytes = eval(item["gen"]) if "gen" in item else item["input"]
    return text if isinstance(text, bytes) else text.encode()


ITEMS = config_items()
each_item = pytest.mark.parametrize("item", ITEMS, ids=[item["id"] for item in ITEMS])


def test_the_corpus_of_configurations_is_there() -> None:
    assert len(ITEMS) >= 28


@each_item
def test_a_bad_configuration_is_refused_with_file_and_line(item: dict[str, str], desk: Desk) -> None:
    file = desk.write_user(content(item))
    with effort() as spent, pytest.raises(ConfigError) as caught:
        desk.load()
    assert spent.loops < 400
    assert file == caught.value.file
    assert caught.value.line


@each_item
def test_a_bad_configuration_cannot_be_trusted(item: dict[str, str], desk: Desk) -> None:
    desk.write_project(content(item))
    with effort() as spent:
        inventory = take_inventory(desk.project)
    assert spent.loops < 400
    with pytest.raises(TrustError):
        desk.trust.trust(inventory)


@each_item
def test_the_same_text_as_secrets_gives_values_or_one_kind_of_error(item: dict[str, str], desk: Desk) -> None:
    desk.write_user(content(item), "secrets.yaml")
    with effort() as spent:
        try:
            assert all(isinstance(name, str) for name in desk.load().secrets.names())
        except ConfigError as error:
            assert error.line
    assert spent.loops < 400
