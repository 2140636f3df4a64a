"""onetool serve, as far as its own options go; tests/server has the rest."""

from __future__ import annotations

import json

from cli.command import OneTool


def test_the_log_on_standard_error_is_json_when_that_is_asked_for(onetool: OneTool) -> None:
    ended = onetool.process("serve", "--json", stdin="")
    assert (ended.code, ended.out) == (0, "")
    lines = [json.loads(line) for line in ended.err.splitlines()]
    assert "serving MCP on standard input and output" in [line["message"] for line in lines]
