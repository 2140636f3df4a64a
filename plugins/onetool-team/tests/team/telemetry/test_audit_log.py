"""Every call that may change something leaves a line that says who made it and what allowed it."""

from __future__ import annotations

import json
import logging
import socket
import stat
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from onetool_team.telemetry.audit_log import AuditLog
from onetool_team.telemetry.keyed_hash import KeyedHash
from onetool_team.telemetry.open_telemetry import TeamTelemetry, open_telemetry
from ot.brief_repr import Redact
from ot.config.secrets import Secrets
from ot.config.sections import read_settings
from ot.errors import ConfigError
from ot.execution.caller import Answer, AskUser, Caller, Question
from ot.logs import current_request
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.workspace import Workspace
from run_app import error_of, running_app, value_of

pytestmark = pytest.mark.anyio

PACK = '''
    """A pack that changes things."""

    __ot_read_only__ = ["look"]
    __ot_destructive__ = ["wipe"]


    def look(*, name: str) -> str:
        """Look."""
        return name


    def add(*, name: str) -> str:
        """Add."""
        return name


    def fail(*, name: str) -> str:
        """Fail."""
        raise ValueError(name)


    def wipe(*, name: str) -> str:
        """Wipe."""
        return name
'''
ALICE = "https://issuer.example|alice"


@asynccontextmanager
async def audited(
    directory: Path,
    file: Path,
    config: Mapping[str, Any] | None = None,
    key: str = "",
    redact: Redact = str,
    **settings: Any,
) -> AsyncGenerator[tuple[Workspace, TeamTelemetry]]:
    """Yield a workspace whose effects are written to *file*."""
    state = {"keys": [key]} if key else {}
    given = read_settings({"telemetry": {"audit": str(file), **settings}, "state": state})
    telemetry = open_telemetry(given, Secrets(user={"SEAL": "s" * 32}), {}, redact)
    try:
        async with running_app(directory, {"shop": PACK}, config, engine=PortableEngine()) as app:
            app.watch(telemetry.watchers)
            yield app, telemetry
    finally:
        await telemetry.aclose()


def lines_of(file: Path) -> list[dict[str, Any]]:
    """Return what was written."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def answering(decision: str) -> AskUser:
    """Return who answers every question with *decision*."""

    async def ask(question: Question) -> Answer:
        return Answer("accept", {"decision": decision})

    return ask


async def test_a_line_says_who_called_what_under_which_request_and_how_it_ended(tmp_path: Path) -> None:
    file = tmp_path / "audit" / "effects.jsonl"
    async with audited(tmp_path, file) as (app, _):
        token = current_request.set("r-1")
        reply = await app.run("shop.look(name='x'); shop.add(name='x')", Caller(ALICE, client="editor"))
        current_request.reset(token)
        await app.run("shop.fail(name='x')", Caller(ALICE, client="editor"))
    first, second = lines_of(file)
    assert first.pop("host") == second["host"] == socket.gethostname()
    assert first.pop("ts") <= second.pop("ts")
    assert first.pop("arguments") == second.pop("arguments")
    assert first == {
        "request": "r-1",
        "run": reply.meta["run"],
        "call": 2,
        "principal": ALICE,
        "client": "editor",
        "tool": "shop.add",
        "allowed_by": "it does not say that it is destructive",
        "outcome": "done",
    }
    assert (second["tool"], second["outcome"], second["request"]) == ("shop.fail", "failed", "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


async def test_a_line_says_what_allowed_the_call(tmp_path: Path) -> None:
    file = tmp_path / "effects.jsonl"
    config = {"policy": {"allow": ["shop.a*"]}}
    async with audited(tmp_path, file, config) as (app, _):
        await app.run("shop.add(name='x')", Caller(ALICE))
        for decision in ("allow", "deny"):
            await app.run("shop.wipe(name='x')", Caller(ALICE, ask=answering(decision)))
        await app.run("shop.wipe(name='x')", Caller(app.own_caller.principal, ask=answering("always")))
        await app.run("shop.wipe(name='x')")
    allowed = [line["allowed_by"] for line in lines_of(file) if "allowed_by" in line]
    own = app.own_caller.principal
    assert allowed == [
        "policy.allow: 'shop.a*'",
        f"consent of {ALICE}",
        f"always of {own}",
        "policy.allow: 'shop.wipe'",
    ]


async def test_what_only_reads_leaves_no_line(tmp_path: Path) -> None:
    file = tmp_path / "effects.jsonl"
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("x")
    async with audited(tmp_path, file) as (app, _):
        program = "[shop.look(name='x'), ot.version(), proj.list(), file.read(path='a.txt'), open('a.txt').read()]"
        assert value_of(await app.run(program))
    assert file.read_text() == ""


@pytest.mark.parametrize("tool", ["shop.add", "shop.look"])
@pytest.mark.parametrize("program", ["{}(name='x')", "f = {}\nf(name='x')"])
async def test_what_the_policy_refuses_leaves_a_line_whatever_it_would_have_done(
    tmp_path: Path, tool: str, program: str
) -> None:
    file = tmp_path / "effects.jsonl"
    async with audited(tmp_path, file, {"policy": {"deny": [tool]}}) as (app, _):
        assert error_of(await app.run(program.format(tool), Caller(ALICE)))
    lines = lines_of(file)
    assert {(line["principal"], line["tool"], line["outcome"]) for line in lines} == {(ALICE, tool, "refused")}
    assert all(line["run"] for line in lines)


async def test_what_its_user_declines_leaves_a_line(tmp_path: Path) -> None:
    file = tmp_path / "effects.jsonl"
    async with audited(tmp_path, file) as (app, _):
        assert error_of(await app.run("shop.wipe(name='x')", Caller(ALICE, ask=answering("deny"))))
        assert error_of(await app.run("shop.wipe(name='x')", Caller(ALICE)))
    said_no, nobody_there = lines_of(file)
    assert said_no["outcome"] == nobody_there["outcome"] == "declined"
    assert said_no["arguments"] == nobody_there["arguments"]


async def test_arguments_of_chosen_tools_are_written_without_secrets(tmp_path: Path) -> None:
    file = tmp_path / "effects.jsonl"
    shown: dict[str, Any] = {"audit_arguments": ["shop.a*"]}
    async with audited(tmp_path, file, redact=lambda text: text.replace("s3cret", "[secret]"), **shown) as (app, _):
        await app.run("shop.add(name='to s3cret place'); shop.fail(name='canary')", Caller(ALICE))
    added, failed = lines_of(file)
    assert added["given"] == {"name": "'to [secret] place'"}
    assert added["arguments"]
    assert "given" not in failed
    assert "canary" not in file.read_text()


async def test_standard_output_takes_the_place_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with audited(tmp_path, Path("-")) as (app, _):
        await app.run("shop.add(name='x')", Caller(ALICE))
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["principal"] == ALICE


async def test_arguments_and_results_are_nowhere_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "effects.jsonl"
    async with audited(tmp_path, file) as (app, _):
        await app.run("[shop.add(name='canary7f3a'), shop.add(name='canary7f3a'), shop.add(name='other')]")
    same, again, other = (line["arguments"] for line in lines_of(file))
    assert same == again != other
    assert "canary" not in file.read_text()


def test_equal_arguments_have_equal_hashes_where_the_key_is_the_same() -> None:
    ours, theirs = KeyedHash("s" * 32), KeyedHash("s" * 32)
    values: dict[str, Any] = {"a": 1, "b": [b"x", {"c": None}], "d": "\ud800", "e": 10**40}
    assert ours.of_arguments(values) == theirs.of_arguments(values)
    assert ours.of_arguments({"a": 1, "b": 2}) == theirs.of_arguments({"b": 2, "a": 1})
    assert ours.of_text("x") != KeyedHash("t" * 32).of_text("x")
    assert KeyedHash().of_text("x") != KeyedHash().of_text("x")


async def test_replicas_that_share_a_key_write_the_same_hashes(tmp_path: Path) -> None:
    file = tmp_path / "effects.jsonl"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        async with audited(tmp_path / name, file, key="${SEAL}") as (app, _):
            await app.run("shop.add(name='x')")
    one, two = lines_of(file)
    assert one["arguments"] == two["arguments"]


async def test_a_file_that_is_renamed_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "effects.jsonl"
    async with audited(tmp_path, file) as (app, telemetry):
        assert telemetry.audit
        await app.run("shop.add(name='x')")
        assert telemetry.audit._batches.flush(20)
        file.rename(tmp_path / "effects.1")
        await app.run("shop.add(name='y')")
    assert len(lines_of(file)) == len(lines_of(tmp_path / "effects.1")) == 1


async def test_what_steers_a_terminal_is_written_out(tmp_path: Path) -> None:
    file = tmp_path / "effects.jsonl"
    async with audited(tmp_path, file) as (app, _):
        await app.run("shop.add(name='x')", Caller("a\x1b[2J\n{}|b", client="\x9b"))
    assert not {"\x1b", "\x9b"} & set(file.read_text())
    assert lines_of(file)[0]["principal"] == "a\x1b[2J\n{}|b"


# ---------------------------------------------------------------- a file that cannot be written


def broken(file: Path) -> None:
    """Put a directory where the file was."""
    file.unlink()
    file.mkdir()


async def test_lines_wait_while_the_file_cannot_be_written_and_the_failure_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "effects.jsonl"
    async with audited(tmp_path, file) as (app, telemetry):
        assert telemetry.audit
        audit: AuditLog = telemetry.audit
        with caplog.at_level(logging.INFO, "onetool_team.telemetry"):
            broken(file)
            for name in ("x", "y"):
                assert value_of(await app.run(f"shop.add(name='{name}')"))
                audit._batches.flush(0.3)
            assert audit.failures >= 1
            file.rmdir()
            assert audit._batches.flush(20)
        assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
        assert audit.lost == 0
    assert [line["outcome"] for line in lines_of(file)] == ["done", "done"]


async def test_where_the_log_is_required_nothing_is_called_that_cannot_be_written_down(tmp_path: Path) -> None:
    file = tmp_path / "effects.jsonl"
    async with audited(tmp_path, file, audit_required=True) as (app, telemetry):
        assert value_of(await app.run("shop.add(name='x')"))
        assert telemetry.audit
        assert telemetry.audit._batches.flush(20)
        written = lines_of(file)
        broken(file)
        refused = error_of(await app.run("shop.add(name='x')"))
        assert "the audit log cannot be written" in refused
        assert value_of(await app.run("shop.look(name='x')")) == "x"
        file.rmdir()
        assert value_of(await app.run("shop.add(name='y')"))
    assert [line["outcome"] for line in written] == ["sent", "done"]
    assert [line["outcome"] for line in lines_of(file)] == ["sent", "done"]


async def test_a_server_whose_audit_log_cannot_be_opened_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"telemetry\.audit: .* cannot be written"):
        open_telemetry(read_settings({"telemetry": {"audit": str(tmp_path)}}), Secrets(), {})
