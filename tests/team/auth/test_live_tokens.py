"""Named tokens follow the configuration while the server runs."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from ot.config.load import Loaded, load_config
from ot.config.paths import Paths
from ot.config.trust import Trust
from ot.team.auth.live_tokens import LiveTokens
from ot.team.auth.static_tokens import new_token, token_hash
from ot.team.identity import TokenRefused

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


async def test_a_removed_token_is_refused_and_a_new_one_known_with_the_next_request(paths: Paths):
    loads: list[Loaded] = []

    def load() -> Loaded:
        loads.append(load_config(paths, Trust(paths.global_dir)))
        return loads[-1]

    tokens = LiveTokens(load(), load)
    assert (await tokens.identify(ANN)).name == "ann"
    assert len(loads) == 1, "nothing is read again while nothing changed"
    await asyncio.to_thread(write, paths, entry("bob", BOB))
    found = await asyncio.gather(*(tokens.identify(BOB) for _ in range(10)))
    assert {one.principal for one in found} == {"token|bob"}
    assert len(loads) == 2, "one of ten reads it"
    with pytest.raises(TokenRefused):
        await tokens.identify(ANN)


async def test_a_configuration_that_cannot_be_read_leaves_tokens_as_they_were(
    paths: Paths, caplog: pytest.LogCaptureFixture
):
    load = partial(load_config, paths, Trust(paths.global_dir))
    tokens = LiveTokens(load(), load)
    await asyncio.to_thread(write, paths, "http: {tokens: 7}\n")
    for _ in range(3):
        assert (await tokens.identify(ANN)).name == "ann"
    assert caplog.text.count("tokens stay as they were") == 1, "it is said once"
    await asyncio.to_thread(write, paths, entry("bob", BOB))
    assert (await tokens.identify(BOB)).name == "bob"
