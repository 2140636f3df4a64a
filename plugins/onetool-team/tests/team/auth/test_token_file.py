"""The file of named tokens: tens of thousands of lines, each of them checked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onetool_team.auth.live_tokens import LiveTokens
from onetool_team.auth.static_tokens import new_token, token_hash
from onetool_team.auth.token_file import read_token_file, write_token
from onetool_team.live_configuration import LiveConfiguration
from onetool_team.settings import TOKEN_NAME, StaticToken
from ot.config.paths import Paths
from ot.errors import ConfigError
from pace import times_as_long

pytestmark = pytest.mark.anyio

LOOKS = 2000
HASH = f"sha256:{0:064x}"


def tokens_of(directory: Path, number: int, token: str) -> LiveTokens:
    """Return the tokens of a server that knows *number* people, the last one by *token*."""
    home = directory / str(number)
    home.mkdir()
    lines = [f"p{n} sha256:{n:064x}" for n in range(number - 1)]
    (home / "people.txt").write_text("\n".join([*lines, f"ann {token_hash(token)}"]))
    (home / "onetool.yaml").write_text("http: {tokens_file: people.txt}")
    return LiveTokens(LiveConfiguration(Paths(directory, None, home)))


async def test_one_of_fifty_thousand_is_found_as_quickly_as_one_of_ten(tmp_path: Path):
    token = new_token()
    few, many = tokens_of(tmp_path, 10, token), tokens_of(tmp_path, 50_000, token)

    async def look(tokens: LiveTokens) -> None:
        for _ in range(LOOKS):
            assert (await tokens.identify(token)).name == "ann"

    assert await times_as_long(lambda: look(many), lambda: look(few)) < 3


@pytest.mark.parametrize(
    "line",
    [
        "ann",
        f"ann {HASH[:-1]}",
        f"ann {HASH.upper()}",
        f"a|b {HASH}",
        f"ann {HASH} scopes=root",
        f"ann {HASH} groups=",
        f"ann {HASH} groups=a scopes=run",
        f"ann {HASH} staff",
        f"bob {HASH}",
        f"ann sha256:{1:064x}",
    ],
)
def test_a_bad_line_is_named_by_its_number(tmp_path: Path, line: str):
    file = tmp_path / "people.txt"
    file.write_text(f"# people\n\nbob sha256:{1:064x} groups=staff  \n{line}\n")
    with pytest.raises(ConfigError, match=r"people\.txt:4: "):
        read_token_file(file)


def test_an_empty_or_missing_file_is_an_error_as_an_editor_that_saves_leaves_one(tmp_path: Path):
    (tmp_path / "people.txt").write_text("\n")
    for name in ("people.txt", "other.txt"):
        with pytest.raises(ConfigError, match=name):
            read_token_file(tmp_path / name)


names = st.from_regex(TOKEN_NAME, fullmatch=True)
entries = st.fixed_dictionaries(
    {"hash": st.integers(0, 1 << 256).map(lambda n: f"sha256:{n:064x}"[:71])},
    optional={
        "scopes": st.lists(st.sampled_from(["run", "admin"]), min_size=1, max_size=2, unique=True),
        "groups": st.lists(st.from_regex(re.compile(r"[^\s,=]{1,20}"), fullmatch=True), min_size=1, max_size=3),
    },
)


@given(st.dictionaries(names, entries, min_size=1, max_size=5))
def test_what_is_written_is_read_as_the_settings_would_read_it(
    tmp_path_factory: pytest.TempPathFactory, people: dict[str, dict[str, str | list[str]]]
):
    if len({str(entry["hash"]) for entry in people.values()}) < len(people):
        return
    file = tmp_path_factory.mktemp("tokens") / "people.txt"
    for name, entry in people.items():
        write_token(file, name, entry, replace=False)
    assert read_token_file(file) == {name: StaticToken.model_validate(entry) for name, entry in people.items()}


def test_a_token_that_is_replaced_keeps_what_it_may_do_and_other_lines_stay(tmp_path: Path):
    file = tmp_path / "people.txt"
    file.write_text(f"# ours\nann sha256:{1:064x} groups=staff\nbob sha256:{2:064x}\n")
    file.chmod(0o640)
    with pytest.raises(ConfigError, match="already a token 'ann'"):
        write_token(file, "ann", {"hash": HASH}, replace=False)
    write_token(file, "ann", {"hash": HASH}, replace=True)
    assert file.read_text() == f"# ours\nbob sha256:{2:064x}\nann {HASH} scopes=run groups=staff\n"
    assert file.stat().st_mode & 0o777 == 0o640
