"""When files are looked at again."""

from __future__ import annotations

from pathlib import Path

from ot.registry.freshness import Freshness


class Clock:
    """A clock that a test moves on."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def files(directory: Path, *names: str) -> list[Path]:
    found = [directory / name for name in names]
    for path in found:
        path.write_text("1")
    return found


def test_a_change_of_what_always_matters_is_seen_by_any_command(tmp_path: Path) -> None:
    config, pack = files(tmp_path, "config", "pack")
    freshness = Freshness([config], {"pack": [pack]}, Clock())
    assert not freshness.is_stale(["1"])
    config.write_text("22")
    assert freshness.is_stale(["1"])


def test_a_changed_pack_is_seen_at_once_by_a_command_that_names_it(tmp_path: Path) -> None:
    (pack,) = files(tmp_path, "pack")
    freshness = Freshness([], {"pack": [pack]}, Clock())
    pack.unlink()
    assert not freshness.is_stale(["other"])
    assert freshness.is_stale(["pack"])


def test_a_changed_pack_that_is_reached_by_an_alias_is_seen_within_a_second(tmp_path: Path) -> None:
    (pack,) = files(tmp_path, "pack")
    clock = Clock()
    freshness = Freshness([], {"pack": [pack]}, clock)
    pack.write_text("22")
    clock.now = 0.9
    assert not freshness.is_stale(["alias"])
    clock.now = 1.0
    assert freshness.is_stale(["alias"])
