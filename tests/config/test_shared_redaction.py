"""The log of many workspaces: no secret of any of them, and no more work with more of them."""

from __future__ import annotations

import pytest

from ot.config.secrets import KEPT, IssuedSecrets, Secrets, SharedRedaction
from ot_sdk.redaction import Redactor


def having(value: str) -> Secrets:
    return Secrets(user={"TOKEN": value})


def test_a_line_is_looked_through_as_often_for_a_thousand_workspaces_as_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, text = list[str](), Redactor.text

    def count(self: Redactor, line: str) -> str:
        looks.append(line)
        return text(self, line)

    redaction = SharedRedaction(IssuedSecrets())
    redaction.put("one", having("of-the-operator"))
    monkeypatch.setattr(Redactor, "text", count)
    assert "[secret:TOKEN]" == redaction.redact("of-the-operator")
    alone = len(looks)
    for number in range(1000):
        redaction.put(number, having("of-the-operator" if number % 2 else f"of-person-{number}"))
    looks.clear()
    assert "[secret:TOKEN] [secret:TOKEN]" == redaction.redact("of-person-998 of-the-operator")
    assert alone == len(looks)


def test_a_reload_changes_what_is_taken_out() -> None:
    redaction = SharedRedaction(IssuedSecrets())
    redaction.put("one", having("the-first-value"))
    redaction.put("one", having("the-second-value"))
    assert "the-first-value [secret:TOKEN]" == redaction.redact("the-first-value the-second-value")


def test_the_last_that_have_closed_are_still_taken_out_however_often_one_comes_and_goes() -> None:
    redaction = SharedRedaction(IssuedSecrets())
    for number in range(KEPT + 1):
        redaction.put(number, having(f"of-person-{number:02}"))
        redaction.drop(number)
        redaction.put("command", having("of-a-command"))
        redaction.drop("command")
    line = redaction.redact("of-person-00 of-person-01 of-person-32 of-a-command")
    assert "of-person-00 of-person-01 [secret:TOKEN] [secret:TOKEN]" == line


def test_what_is_issued_to_anybody_is_taken_out_at_once() -> None:
    everybodys = IssuedSecrets()
    redaction, hers, his = SharedRedaction(everybodys), IssuedSecrets(everybodys), IssuedSecrets(everybodys)
    hers.add("server", "login of shop", ["issued-to-ann"])
    his.add("server", "login of shop", ["issued-to-bob"])
    assert "[secret:login of shop] [secret:login of shop]" == redaction.redact("issued-to-ann issued-to-bob")
    assert "issued-to-bob" == hers.redactor.text("issued-to-bob")
