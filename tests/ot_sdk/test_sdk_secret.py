"""Secrets do not show themselves."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot_sdk.host import Secret
from ot_sdk.redaction import SHORTEST, Redactor

VALUES = st.text(min_size=SHORTEST, max_size=12).filter(lambda value: value not in "[secret:NAME]")


def test_only_reveal_shows_the_value() -> None:
    secret = Secret("hidden value")
    assert "hidden value" == secret.reveal()
    shown = f"{secret} {secret!r} {secret:>30} {[secret]} {secret.__class__.__dict__}" + "%s %r" % (secret, secret)  # noqa: UP031 - a way in which people format
    assert "hidden" not in shown
    assert not hasattr(secret, "__dict__")


def test_a_secret_is_neither_json_nor_a_pickle() -> None:
    with pytest.raises(TypeError):
        json.dumps({"token": Secret("hidden value")})
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps([Secret("hidden value")], protocol)


def test_a_copy_is_the_secret_itself() -> None:
    secret = Secret("hidden value")
    assert secret is copy.copy(secret)
    assert secret is copy.deepcopy([secret])[0]


def test_an_empty_secret_is_false() -> None:
    assert not Secret("")
    assert Secret("x")


@given(VALUES, st.text(), st.text())
def test_a_value_is_found_wherever_it_stands(value: str, before: str, after: str) -> None:
    redactor = Redactor({"NAME": value})
    assert value not in redactor.text(before + value + after).replace("[secret:NAME]", "\0" * SHORTEST)
    raw = (before + value + after).encode()
    assert b"[secret:NAME]" in redactor.data(raw)


@given(st.text(), st.binary())
def test_without_secrets_everything_stays_as_it_is(text: str, data: bytes) -> None:
    redactor = Redactor({"SHORT": "abc"})
    assert redactor.idle
    assert text == redactor.text(text)
    assert data == redactor.data(data)


def test_of_two_secrets_that_begin_alike_the_longer_is_found() -> None:
    redactor = Redactor({"SHORT": "abcdef", "LONG": "abcdefghi"})
    assert "[secret:LONG] [secret:SHORT]" == redactor.text("abcdefghi abcdefg"[:-1])
    assert b"[secret:LONG]" == redactor.data(b"abcdefghi")
