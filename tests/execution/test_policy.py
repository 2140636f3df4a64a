"""The operator's patterns decide which tools may be called."""

from __future__ import annotations

from pathlib import Path

import pytest

from ot.errors import ToolDenied
from ot.execution.policy import PolicyCheck
from ot.registry.tool import Tool
from run_app import Calls, error_of, running_app, value_of

VAULT = "def read(): return 'read'\ndef wipe(): return 'wiped'\n"


@pytest.mark.parametrize(
    ("patterns", "denied"),
    [
        ([], False),
        (["vault.wipe"], True),
        (["vault.*"], True),
        (["*.wipe"], True),
        (["*"], True),
        (["v?ult.[vw]ipe"], True),
        (["vault.read"], False),
        (["VAULT.WIPE"], False),
        (["vault"], False),
        (["other.*", "vault.w*"], True),
    ],
)
def test_a_tool_is_denied_when_a_pattern_matches_its_full_name(patterns: list[str], denied: bool) -> None:
    policy = PolicyCheck(patterns)
    if denied:
        with pytest.raises(ToolDenied, match=r"vault\.wipe is denied by the policy \(policy\.deny: "):
            policy.require_allowed(Tool("vault", "wipe"))
    else:
        policy.require_allowed(Tool("vault", "wipe"))


@pytest.mark.anyio
async def test_a_denied_tool_is_denied_however_it_is_reached(tmp_path: Path) -> None:
    config = {"policy": {"deny": ["vault.wipe"]}, "aliases": {"clean": "vault.wipe"}}
    calls = Calls()
    async with running_app(tmp_path, {"vault": VAULT}, config, observers=[calls]) as app:
        assert value_of(await app.run("vault.read()")) == "read"
        for command in ("vault.wipe()", "clean()", "f = vault.wipe\nf()", "v = vault\nv.wipe()", "await vault.wipe()"):
            assert "PermissionError: vault.wipe is denied by the policy" in error_of(await app.run(command)), command
    assert [record.error for record in calls.records] == ["", *["ToolDenied"] * 5]


@pytest.mark.anyio
async def test_wrong_arguments_do_not_tell_more_of_a_denied_tool(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"vault": VAULT}, {"policy": {"deny": ["vault.*"]}}) as app:
        assert "denied" in error_of(await app.run("vault.wipe(nothing=1)"))
