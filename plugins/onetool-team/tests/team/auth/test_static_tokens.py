"""Named tokens: only hashes are kept, and nothing but the very token is accepted."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from onetool_team.auth.static_tokens import PREFIX, StaticTokens, new_token, token_hash
from onetool_team.auth.token_redaction import without_tokens
from onetool_team.identity import Identity, TokenRefused
from onetool_team.settings import Http, StaticToken

pytestmark = pytest.mark.anyio

GOOD, OTHER = (f"{PREFIX}{letter * 43}" for letter in "ab")
KNOWN = {
    "ci": StaticToken(hash=token_hash(GOOD), groups=("robots",)),
    "boss": StaticToken(hash=token_hash(OTHER), scopes=("admin",)),
}
NEAR = {
    "empty": "",
    "without its prefix": GOOD.removeprefix(PREFIX),
    "without its last letter": GOOD[:-1],
    "with one more letter": GOOD + "A",
    "in capitals": GOOD.upper(),
    "with other capitals": GOOD.swapcase(),
    "with a prefix in capitals": PREFIX.upper() + GOOD.removeprefix(PREFIX),
    "with its prefix twice": PREFIX + GOOD,
    "with a space before it": f" {GOOD}",
    "with a line after it": f"{GOOD}\n",
    "with a zero byte": GOOD[:-1] + "\0",
    "with a letter that looks like another": GOOD.replace("o", "\N{CYRILLIC SMALL LETTER O}", 1),
    "half of two": GOOD[:20] + OTHER[20:],
    "its hash": token_hash(GOOD),
    "the digits of its hash": PREFIX + token_hash(GOOD)[7:50],
}


async def test_a_token_is_known_by_its_name_with_its_scopes_and_groups():
    tokens = StaticTokens(KNOWN)
    assert await tokens.identify(GOOD) == Identity("token|ci", "ci", frozenset({"run"}), frozenset({"robots"}))
    assert (await tokens.identify(OTHER)).scopes == {"run", "admin"}, "who may administer may run"


@pytest.mark.parametrize("near", NEAR.values(), ids=NEAR.keys())
async def test_what_is_nearly_a_token_is_refused_and_the_token_works_after_it(near: str):
    tokens = StaticTokens(KNOWN)
    with pytest.raises(TokenRefused, match="unknown"):
        await tokens.identify(near)
    assert (await tokens.identify(GOOD)).name == "ci"


@given(st.text(max_size=80) | st.text(alphabet="otk_aB", min_size=len(GOOD), max_size=len(GOOD)))
async def test_no_other_text_is_accepted(text: str):
    with pytest.raises(TokenRefused):
        await StaticTokens(KNOWN).identify(text)


def test_tokens_are_new_each_time_and_long_enough():
    made = {new_token() for _ in range(100)}
    assert len(made) == 100 and {len(token) for token in made} == {len(PREFIX) + 43}, "43 letters hold 256 bits"


def test_a_token_is_nowhere_in_what_is_kept_of_it():
    kept = repr(StaticTokens(KNOWN).__dict__) + repr(KNOWN) + Http(tokens=KNOWN).model_dump_json()
    assert GOOD not in kept and GOOD.removeprefix(PREFIX) not in kept


@pytest.mark.parametrize(
    ("name", "entry", "why"),
    [
        ("ci", {"hash": GOOD}, "not what onetool token prints"),
        ("ci", {"hash": "sha256:" + "A" * 64}, "not what onetool token prints"),
        ("a|b", {"hash": token_hash(GOOD)}, "name of a token"),
        ("", {"hash": token_hash(GOOD)}, "name of a token"),
        ("ci", {"hash": token_hash(GOOD), "scopes": ["Run"]}, "'run' or 'admin'"),
        ("ci", {"hash": token_hash(GOOD), "scopes": []}, "at least 1"),
    ],
)
def test_settings_that_would_let_in_nobody_or_anybody_are_refused(name: str, entry: dict[str, object], why: str):
    with pytest.raises(ValidationError, match=re.escape(why)):
        Http.model_validate({"tokens": {name: entry}})


@pytest.mark.parametrize(
    "text",
    [
        f"the header was Bearer {GOOD}",
        f'{{"authorization":"bearer {GOOD}"}}',
        f"token={GOOD}&x=1",
        GOOD,
        "Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl",
        "x eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl y",
        "Authorization: Bearer aW4ta25vd24tb3BhcXVlLXRva2Vu==",
    ],
)
def test_no_token_gets_into_the_log_also_one_that_nobody_has_seen(text: str):
    shown = without_tokens(str)(text)
    assert "[secret:token]" in shown
    assert GOOD not in shown and "eyJzdWI" not in shown and "aW4ta25" not in shown


def test_other_texts_are_logged_as_they_are():
    for text in ("ot_tools and otk_ alone", "the bearer of bad news", "eyJ", "1 bearer token was refused"):
        assert without_tokens(str)(text) == text
