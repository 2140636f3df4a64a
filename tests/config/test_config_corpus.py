"""Every configuration of the corpus of bad inputs, in each file that is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from config.desk import Desk
from ot.config.inventory import take_inventory
from ot.errors import ConfigError, TrustError
from pace import effort

CORPUS = Path(__file__).parents[1] / "corpus" / "bad_inputs.yaml"


def config_items() -> list[Any]:
    groups = yaml.load(CORPUS.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return next(group["items"] for group in groups["groups"] if group["group"] == "config")


def content(item: dict[str, str]) -> bytes:
    text: str | bytes = eval(item["gen"]) if "gen" in item else item["input"]
    return text if isinstance(text, bytes) else text.encode()


ITEMS = config_items()
each_item = pytest.mark.parametrize("item", ITEMS, ids=[item["id"] for item in ITEMS])


def test_the_corpus_is_there() -> None:
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
