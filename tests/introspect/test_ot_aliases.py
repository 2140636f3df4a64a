"""Lists of aliases, at three levels of detail."""

from __future__ import annotations

import pytest

from ot.introspect.aliases import list_aliases

ALIASES = {"ws": "brave.web_search", "F": "file.read", "search": "rg.find"}


@pytest.mark.scenario("001-32", "001-35")
@pytest.mark.parametrize("info", ["min"])
def test_all_aliases_are_lines_of_name_and_target(info: str) -> None:
    assert list_aliases(ALIASES, "", info) == ["F -> file.read", "search -> rg.find", "ws -> brave.web_search"]


@pytest.mark.scenario("001-33")
def test_a_pattern_is_part_of_the_name_or_the_target_in_any_case() -> None:
    assert list_aliases(ALIASES, "SEARCH", "list") == ["search", "ws"]
    assert list_aliases(ALIASES, "nothing", "list") == []


@pytest.mark.scenario("001-34")
def test_names_alone() -> None:
    assert list_aliases(ALIASES, "", "list") == ["F", "search", "ws"]


@pytest.mark.scenario("001-36")
def test_name_and_target_apart() -> None:
    assert list_aliases(ALIASES, "f", "full")[0] == {"name": "F", "target": "file.read"}


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="info must be one of"):
        list_aliases(ALIASES, "", "all")
