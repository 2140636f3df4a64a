"""Named tokens follow the configuration while the server runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from onetool_team import live_configuration
from onetool_team.auth.live_tokens import LiveTokens
from onetool_team.auth.static_tokens import new_token, token_hash
from onetool_team.identity import Identity, TokenRefused
from onetool_team.live_configuration import LiveConfiguration
from ot.config.load import UserFiles, read_user_files
from ot.config.paths import Paths

pytestmark = pytest.mark.anyio

ANN, BOB = new_token(), new_token()


def write(paths: Paths, text: str) -> None:
    """Replace the configuration as an editor does, by another file of that name."""
    new = paths.global_dir / "new.yaml"
    new.write_text(text)
    new.replace(paths.global_dir / "onetool.yaml")


def entry(name: str, token: str) -> str:
    return f"http: {{tokens: {{{name}: {{hash: '{token_hash(token)}'}}}}}}\n"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    (tmp_path / "user").mkdir()
    (tmp_path / "work").mkdir()
    found = Paths.of(tmp_path / "work", tmp_path / "user")
    write(found, entry("ann", ANN))
    return found


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Paths]:
    """What was read: one entry each time that the configuration's files were."""
    found: list[Paths] = []

    def read(paths: Paths) -> UserFiles:
        found.append(paths)
        return read_user_files(paths)

    monkeypatch.setattr(live_configuration, "read_user_files", read)
    return found


async def test_a_removed_token_is_refused_and_a_new_one_known_with_the_next_request(paths: Paths, reads: list[Paths]):
    tokens = LiveTokens(LiveConfiguration(paths))
    assert (await tokens.identify(ANN)).name == "ann"
    assert len(reads) == 1, "nothing is read again while nothing changed"
    await asyncio.to_thread(write, paths, entry("bob", BOB))
    found = await asyncio.gather(*(tokens.identify(BOB) for _ in range(10)))
    assert {one.principal for one in found} == {"token|bob"}
    assert len(reads) == 2, "one of ten reads it"
    with pytest.raises(TokenRefused):
        await tokens.identify(ANN)


async def test_a_configuration_that_cannot_be_read_leaves_tokens_as_they_were(
    paths: Paths, caplog: pytest.LogCaptureFixture
):
    configuration = LiveConfiguration(paths)
    tokens = LiveTokens(configuration)
    await asyncio.to_thread(write, paths, "http: {tokens: 7}\n")
    for _ in range(3):
        assert (await tokens.identify(ANN)).name == "ann"
    assert caplog.text.count("the one before stays") == 1, "it is said once"
    assert "onetool.yaml:1" in configuration.trouble and "7" not in configuration.trouble
    await asyncio.to_thread(write, paths, entry("bob", BOB))
    assert (await tokens.identify(BOB)).name == "bob" and not configuration.trouble


async def test_a_changed_file_of_tokens_is_read_by_itself_and_a_bad_line_changes_nothing(
    paths: Paths, reads: list[Paths]
):
    people = paths.global_dir / "people.txt"
    people.write_text(f"bob {token_hash(BOB)} scopes=run,admin groups=staff,night\n")
    write(paths, f"http: {{tokens_file: people.txt, tokens: {{ann: {{hash: '{token_hash(ANN)}'}}}}}}\n")
    configuration = LiveConfiguration(paths)
    tokens = LiveTokens(configuration)
    assert await tokens.identify(BOB) == Identity(
        "token|bob", "bob", frozenset({"run", "admin"}), frozenset({"staff", "night"})
    )
    assert (await tokens.identify(ANN)).name == "ann"
    people.write_text(f"cid {token_hash(BOB)}\n")
    assert (await tokens.identify(BOB)).name == "cid"
    people.write_text(f"dan {token_hash(BOB)}\nand so on\n")
    assert (await tokens.identify(BOB)).name == "cid" and "people.txt:2" in configuration.trouble
    people.write_text("# nobody\n")
    with pytest.raises(TokenRefused):
        await tokens.identify(BOB)
    assert not configuration.trouble and len(reads) == 1
    people.write_text(f"ann {token_hash(BOB)}\n")
    await tokens.identify(ANN)
    assert "people.txt" in configuration.trouble, "a name stands in one place"
    write(paths, f"http: {{tokens: {{bob: {{hash: '{token_hash(BOB)}'}}}}}}\n")
    assert (await tokens.identify(BOB)).name == "bob" and not configuration.trouble
    with pytest.raises(TokenRefused):
        await tokens.identify(ANN)
