"""The texts that are made from the models: JSON schema, reference page."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from config.desk import Desk
from ot.config.models import Config
from ot.config.new_directory import HEAD, json_schema
from ot.config.sections import whole_model
from ot.config.shape import all_keys

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
